from datetime import UTC, datetime

import pytest

from perfci.history.places import Place, branch_of, year_of


def test_a_place_is_read_back_from_its_path():
    place = Place.of("20260301T140500-4f1c", datetime(2026, 3, 1, tzinfo=UTC))
    assert place.path == "2026-03/20260301T140500-4f1c.json.gz"
    assert (place.year, place.folder) == (2026, "2026-03")
    assert Place.at(place.path) == place


@pytest.mark.parametrize(
    "path",
    [
        "2026-03/.json.gz",
        "2026-03/a.json",
        "2026-00/a.json.gz",
        "2026-13/a.json.gz",
        "226-03/a.json.gz",
        "2026-03/../a.json.gz",
        "2026-03/a.json.gz\n",
        "\n2026-03/a.json.gz",
        "x/2026-03/a.json.gz",
        "٢٠٢٦-03/a.json.gz",
        f"2026-03/{'a' * 65}.json.gz",
        "2026-03/a b.json.gz",
    ],
)
def test_other_paths_are_no_places(path):
    assert Place.at(path) is None


def test_a_branch_is_that_of_a_year():
    assert branch_of("perf-history", 2026) == "perf-history-2026"
    assert year_of("perf-history", "perf-history-2026") == 2026


@pytest.mark.parametrize(
    "branch",
    [
        "perf-history",
        "perf-history-",
        "perf-history-20266",
        "2026",
        "x-perf-history-2026",
        "perf-history-2026-a",
        "perf-history-2026\n",
    ],
)
def test_other_branches_are_of_no_year(branch):
    assert year_of("perf-history", branch) is None
