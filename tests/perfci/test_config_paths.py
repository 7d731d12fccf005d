"""Paths that people give: with what a URL reads otherwise, and those that are none."""

from pathlib import Path

import pytest
from stores import make_store

from perfci.config import load_config
from perfci.errors import ConfigurationError

ODD = ("a b.db", "q?x.db", "h#x.db", "p%20x.db", "ü ñ.db", "100%.db", "a&b=c;d.db")


@pytest.mark.parametrize("name", ODD)
def test_a_store_lies_where_its_path_says(tmp_path: Path, name: str) -> None:
    make_store(load_config(tmp_path, environment={}, store=name).store).close()
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("name", ["q?x", "p%20x", "100%"])
def test_so_does_the_store_of_a_project_in_an_odd_folder(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    make_store(load_config(root, environment={}).store).close()
    assert (root / ".perfci" / "history.db").is_file()


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x", "x" * 300, "a\0b"])
@pytest.mark.parametrize("key", ["store", "kernels", "cache"])
def test_what_no_file_can_be_called_is_said(tmp_path: Path, key: str, path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"command line: {key} = .* is no usable path: "):
        load_config(tmp_path, environment={}, **{key: path})
    variable = f"PERFCI_{key.upper()}"
    with pytest.raises(ConfigurationError, match=f"^{variable}=.*: is no usable path: "):
        load_config(tmp_path, environment={variable: path})


@pytest.mark.parametrize("url", ["sqlite:/x.db", "sqlite:x.db", "file:x.db"])
def test_half_a_url_is_no_path(tmp_path: Path, url: str) -> None:
    assert load_config(tmp_path, environment={}, store=url).store == url


def test_a_current_folder_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(ConfigurationError, match="the current folder is gone"):
        load_config(environment={})
