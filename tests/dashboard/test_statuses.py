import copy
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from perfci.dashboard.app import create_app

ASK = "/_dash-update-component"
GOOD: dict[str, Any] = {
    "output": ".._pages_content.children..._pages_store.data..",
    "outputs": [
        {"id": "_pages_content", "property": "children"},
        {"id": "_pages_store", "property": "data"},
    ],
    "inputs": [
        {"id": "_pages_location", "property": "pathname", "value": "/"},
        {"id": "_pages_location", "property": "search", "value": ""},
    ],
    "changedPropIds": ["_pages_location.pathname"],
}


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    client = create_app(f"sqlite:///{tmp_path / 'history.db'}").server.test_client()
    client.get("/")
    return client


@pytest.mark.parametrize(
    "path", ["/", "/runs", "/noise", "/run/abc", "/kernel/scale", "/kernel/scale/"]
)
def test_the_addresses_of_pages_are_found(client, path) -> None:
    assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    "path", ["/nope", "/404", "/kernel", "/run/", "/kernel/a/b", "/favicon.ico", "/%00", "/.env"]
)
def test_other_addresses_are_not_and_still_load_the_friendly_page(client, path) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "_dash-renderer" in answer.text or "dash-renderer" in answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_what_belongs_to_no_page_keeps_its_status(client) -> None:
    assert client.get("/_dash-layout").status_code == 200
    assert client.get("/assets/style.css", buffered=True).status_code == 200
    assert client.get("/assets/nope.css").status_code == 404


def test_a_proper_request_is_answered(client) -> None:
    assert client.post(ASK, json=GOOD).status_code == 200


@pytest.mark.parametrize("part", ["output", "outputs", "inputs", "state", "changedPropIds"])
@pytest.mark.parametrize("value", [None, 5, "x", {}, [1], [[]], [{}], [None]])
def test_a_request_that_no_page_sends_is_a_bad_one(client, part, value) -> None:
    assert client.post(ASK, json={**GOOD, part: value}).status_code == 400


@pytest.mark.parametrize("value", [None, 5, [], {}, "", "runs", "\x00", "x" * 100_000])
def test_an_address_that_is_none_is_a_bad_request(client, value) -> None:
    asked = copy.deepcopy(GOOD)
    asked["inputs"][0]["value"] = value
    assert client.post(ASK, json=asked).status_code == 400


@pytest.mark.parametrize(
    "value", ["//", "/kernel/%00", "/kernel/\ud800", "/%ff", "/run/" + "y" * 9]
)
def test_an_odd_address_is_no_error(client, value) -> None:
    asked = copy.deepcopy(GOOD)
    asked["inputs"][0]["value"] = value
    assert client.post(ASK, json=asked).status_code == 200


@pytest.mark.parametrize("output", ["location.href", "_pages_dummy.children", "nope.children"])
def test_what_the_browser_does_itself_is_not_asked_of_the_server(client, output) -> None:
    assert client.post(ASK, json={**GOOD, "output": output}).status_code == 400


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"null", b"[]", b'"x"', b"[" * 100_000])
def test_a_body_that_is_no_request_is_a_bad_one(client, body) -> None:
    answer = client.post(ASK, data=body, content_type="application/json")
    assert answer.status_code == 400
    assert "Traceback" not in answer.text
