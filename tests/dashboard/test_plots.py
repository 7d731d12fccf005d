import pytest

from perfci.dashboard import plots


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("page", ["#ffffff", "#171b21"])
@pytest.mark.parametrize("colour", [*plots.COLOURS, plots.GREY])
def test_every_colour_stands_out_from_a_light_and_a_dark_panel(colour: str, page: str) -> None:
    high, low = sorted((luminance(colour), luminance(page)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 3.0


def test_variants_in_a_row_share_neither_colour_nor_marker() -> None:
    styles = {(plots.colour_of(index), plots.marker_of(index)) for index in range(56)}
    assert len(styles) == 56
