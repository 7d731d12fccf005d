"""Modules of a side's own: gone afterwards, but for what is installed."""

import sys
from pathlib import Path

import pytest

from perfci.workers.isolation import own_modules


def _write(folder: Path, text: str) -> str:
    (folder / "parts_of_mine").mkdir(parents=True)
    (folder / "parts_of_mine/sums_of_mine.py").write_text(text)
    return str(folder)


def test_what_is_imported_inside_is_found_anew_the_next_time(tmp_path: Path) -> None:
    seen = []
    for name, text in (("one", "WIDTH = 1\n"), ("other", "WIDTH = 2\n")):
        with own_modules():
            sys.path.insert(0, _write(tmp_path / name, text))
            from parts_of_mine import (  # type: ignore[import-not-found]  # noqa: PLC0415
                sums_of_mine,
            )

            seen.append(sums_of_mine)
    assert [each.WIDTH for each in seen] == [1, 2]
    assert not [each for each in sys.modules if "of_mine" in each]
    assert str(tmp_path / "one") not in sys.path


def test_what_is_imported_only_later_is_not_found_rather_than_the_other_side_s(
    tmp_path: Path,
) -> None:
    with own_modules():
        sys.path.insert(0, _write(tmp_path / "one", "WIDTH = 1\n"))
    with pytest.raises(ModuleNotFoundError):
        import parts_of_mine.sums_of_mine  # noqa: F401, PLC0415


def test_what_is_installed_stays() -> None:
    with own_modules():
        import colorsys  # noqa: F401, PLC0415
    assert "colorsys" in sys.modules
