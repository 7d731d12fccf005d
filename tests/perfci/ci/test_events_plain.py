"""Without a provider: what is checked out is looked at as by a schedule."""

from pathlib import Path

import pytest
import scratch

from perfci.ci.event import Kind, Provider
from perfci.ci.providers import read_event
from perfci.errors import EventError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "kernels"
    root.mkdir()
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    return root


@pytest.mark.parametrize(
    ("address", "repository"),
    [
        ("", "kernels"),
        ("git@git.example:example/kernels.git", "example/kernels"),
        ("https://git.example/example/kernels", "example/kernels"),
        ("https://someone:secret@git.example/example/kernels.git/", "example/kernels"),
    ],
)
def test_what_is_checked_out_is_what_there_is(root: Path, address: str, repository: str) -> None:
    if address:
        scratch.git(root, "remote", "add", "origin", address)
    event = read_event({}, root)
    assert (event.provider, event.kind) == (Provider.PLAIN, Kind.SCHEDULE)
    assert event.head == scratch.git(root, "rev-parse", "HEAD")
    assert event.repository == repository
    assert event.is_default_branch


def test_a_branch_and_a_detached_checkout(root: Path) -> None:
    scratch.git(root, "switch", "-q", "-c", "topic")
    assert read_event({}, root).branch == "topic"
    scratch.git(root, "switch", "-q", "--detach")
    assert read_event({}, root).branch == "main"


def test_without_a_commit_there_is_no_event(tmp_path: Path) -> None:
    scratch.git(tmp_path, "init", "-q")
    with pytest.raises(EventError, match="no commits yet"):
        read_event({}, tmp_path)
