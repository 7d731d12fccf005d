"""A GitHub that answers on this machine, for every test that asks for one."""

from collections.abc import Iterator

import pytest
from github_double import GitHubDouble, serving


@pytest.fixture
def github() -> Iterator[GitHubDouble]:
    with serving() as double:
        yield double
