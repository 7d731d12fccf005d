import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci import units


@pytest.mark.parametrize(
    ("latency_ns", "text"),
    [
        (0.0, "0 ns"),
        (0.0042, "0.0042 ns"),
        (0.9996, "1.00 ns"),
        (7.0, "7.00 ns"),
        (9.996, "10.0 ns"),
        (12_345.0, "12.3 µs"),
        (999.4, "999 ns"),
        (999.5, "1.00 µs"),
        (999_499.0, "999 µs"),
        (999_500.0, "1.00 ms"),
        (1_234_567.0, "1.23 ms"),
        (1_235_001.0, "1.24 ms"),
        (61e9, "61.0 s"),
        (1_234_567e9, "1,234,567 s"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (None, "–"),
    ],
)
def test_latency(latency_ns: float | None, text: str) -> None:
    assert units.format_latency(latency_ns) == text


@given(st.floats(min_value=1.0, max_value=9.9e11))
def test_latency_is_within_half_a_digit_of_three(latency_ns: float) -> None:
    number, unit = units.format_latency(latency_ns).split(" ")
    factor = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * factor == pytest.approx(latency_ns, rel=0.00501)
    assert len(number.replace(".", "")) == 3


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "–"),
        (0.0, "±0.00 %"),
        (0.0052, "±0.52 %"),
        (0.00994, "±0.99 %"),
        (0.00996, "±1.0 %"),
        (0.123, "±12.3 %"),
        (1.5, "±150 %"),
        (9.0, "±900 %"),
        (1e100, "> ±900 %"),
    ],
)
def test_half_an_interval(share: float | None, text: str) -> None:
    assert units.format_half_width(share) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1536 * 2**20, "1.50 GiB"),
        (139 * 2**30, "139 GiB"),
        (2**60, "1,048,576 TiB"),
        (None, "–"),
    ],
)
def test_bytes(size_bytes: int | None, text: str) -> None:
    assert units.format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0, "0.0 %"),
        (1.0004, "0.0 %"),
        (0.9996, "0.0 %"),
        (1.032, "+3.2 %"),
        (0.989, "−1.1 %"),
        (1.9994, "+99.9 %"),
        (1.9996, "+100 %"),
        (4.78, "+378 %"),
        (100.0, "+9,900 %"),
        (1e4, "+999,900 %"),
        (1e300, "+1.0e+302 %"),
        (None, "–"),
    ],
)
def test_change(ratio: float | None, text: str) -> None:
    assert units.format_change(ratio) == text


def test_interval() -> None:
    assert units.format_interval((1.01, 1.054)) == "[+1.0, +5.4] %"
    assert units.format_interval((0.5, 1.0)) == "[−50.0, 0.0] %"
    assert units.format_interval((19.0, 21.0)) == "[+1,800, +2,000] %"
    assert units.format_interval(None) == "–"


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((1e-9, 6.7e8), "[< −90.0, > +900] %"),
        ((0.0, math.inf), "[< −90.0, > +900] %"),
        ((0.05, 6.0), "[< −90.0, +500] %"),
        ((0.5, 60.0), "[−50.0, > +900] %"),
    ],
)
def test_an_interval_that_knows_nothing_is_not_written_out(
    interval: tuple[float, float], text: str
) -> None:
    assert units.format_interval(interval) == text


def test_a_smallest_visible_change_beyond_all_sense_is_no_figure() -> None:
    assert units.format_visible(0.114) == "+11.4 %"
    assert units.format_visible(8.9) == "+890 %"
    assert units.format_visible(12_345.67) == "more than ten times"
    assert units.format_visible(math.inf) == "more than ten times"


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0.0, "0.0 s"),
        (3.24, "3.2 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 m"),
        (72.0, "1 m 12 s"),
        (3599.6, "1 h"),
        (7500.0, "2 h 5 m"),
        (86_400.0 * 2, "48 h"),
        (float("nan"), "nan"),
        (None, "–"),
    ],
)
def test_duration(duration_s: float | None, text: str) -> None:
    assert units.format_duration(duration_s) == text


def test_date_is_in_utc_and_never_rounded_up() -> None:
    assert units.format_date(datetime(2026, 3, 1, 14, 5, 59, tzinfo=UTC)) == "2026-03-01 14:05Z"
    assert (
        units.format_second(datetime(2026, 3, 1, 14, 5, 59, tzinfo=UTC)) == "2026-03-01 14:05:59Z"
    )
    eastern = timezone(timedelta(hours=-5))
    assert units.format_date(datetime(2026, 3, 1, 23, 0, tzinfo=eastern)) == "2026-03-02 04:00Z"


def test_date_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="2026-03-01T14:05:00 has no time zone"):
        units.format_date(datetime(2026, 3, 1, 14, 5))  # noqa: DTZ001 -- the very case


def test_sha() -> None:
    assert units.shorten_sha("0123456789abcdef0123456789abcdef01234567") == "0123456789"
    assert units.shorten_sha("abc") == "abc"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (0.0, "0"),
        (9.31e-5, "9.3e-05"),
        (12.0, "1.2e+01"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (None, "–"),
    ],
)
def test_error(error: float | None, text: str) -> None:
    assert units.format_error(error) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.8e-4, 2.3e-4, "1.8–2.3e-04"),
        (9.3e-5, 1.1e-4, "0.9–1.1e-04"),
        (1.81e-4, 1.82e-4, "1.8e-04"),
        (2e-3, 7.0, "2.0e-03–7.0e+00"),
        (0.0, 1e-7, "0–1.0e-07"),
        (0.0, 0.0, "0"),
        (1e-4, float("nan"), "1.0e-04–nan"),
    ],
)
def test_range_of_errors(low: float, high: float, text: str) -> None:
    assert units.format_error_range(low, high) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (1.0, "1"),
        (4.249, "4.25"),
        (598.4, "598"),
        (12_345, "12,345"),
        (2.5e7, "2.50e+07"),
        (float("nan"), "nan"),
    ],
)
def test_number(number: float, text: str) -> None:
    assert units.format_number(number) == text


def test_count() -> None:
    assert units.format_count(7) == "7"
    assert units.format_count(12_345) == "12,345"
    assert [units.count_things(count, "run") for count in (0, 1, 2)] == [
        "0 runs",
        "1 run",
        "2 runs",
    ]
    assert units.count_things(3, "pass", "passes") == "3 passes"
    assert [units.choose_number(count, "is", "are") for count in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "0×"),
        (0.0041, "0.0041×"),
        (0.311, "0.31×"),
        (0.6, "0.60×"),
        (0.996, "1.0×"),
        (4.249, "4.2×"),
        (17.0, "17.0×"),
        (99.96, "100×"),
        (812.4, "812×"),
        (12_345.0, "12,345×"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (None, "–"),
    ],
)
def test_multiples_have_two_or_three_digits(ratio: float | None, text: str) -> None:
    assert units.format_multiple(ratio) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (units.format_bandwidth(4.213e12), "4.21 TB/s"),
        (units.format_bandwidth(44.2e9), "44.2 GB/s"),
        (units.format_bandwidth(None), "–"),
        (units.format_rate(712.4e12), "712 Tflop/s"),
        (units.format_rate(1.5e15), "1.50 Pflop/s"),
        (units.format_work(18.87e6), "18.9 Mflop"),
        (units.format_work(0.0), "0 flop"),
        (units.format_intensity(22.34), "22.3 flop/B"),
        (units.format_intensity(0.25), "0.25 flop/B"),
        (units.format_intensity(1365.3), "1,365 flop/B"),
    ],
)
def test_rates_work_and_intensity(written: str, text: str) -> None:
    assert written == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.384, "38 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (1.024, "102 %"),
        (12.3, "1,230 %"),
        (0.0042, "0.4 %"),
        (0.00042, "0.04 %"),
        (float("nan"), "nan"),
        (None, "–"),
    ],
)
def test_shares(share: float | None, text: str) -> None:
    assert units.format_share(share) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.734, "0.73"),
        (0.0042, "0.0042"),
        (9.994, "9.99"),
        (12.34, "12.3"),
        (1234.0, "1,234"),
        (0.0, "0"),
        (None, "–"),
    ],
)
def test_ratios(ratio: float | None, text: str) -> None:
    assert units.format_ratio(ratio) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (units.format_rate(1e300), "1.0e+285 Pflop/s"),
        (units.format_latency(1e300), "1.0e+291 s"),
        (units.format_share(1e300), "1.0e+302 %"),
        (units.format_ratio(1e300), "1.0e+300"),
        (units.format_multiple(1e300), "1.0e+300×"),
        (units.format_ratio(123456.0), "123,456"),
    ],
)
def test_what_cannot_be_is_short(text: str, written: str) -> None:
    assert text == written
