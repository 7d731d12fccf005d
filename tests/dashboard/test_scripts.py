import pytest

from perfci.dashboard.app import create_app


@pytest.mark.parametrize("path", ["../../x", "x/y", "dash/../../x", "dash/nothing.js", "os/x.js"])
def test_what_is_no_script_of_dash_is_not_found(tmp_path, path) -> None:
    client = create_app(f"sqlite:///{tmp_path / 'history.db'}").server.test_client()
    client.get("/")
    assert client.get(f"/_dash-component-suites/{path}").status_code == 404
