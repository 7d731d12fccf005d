"""The only formatter of numbers: every figure that a person reads is written here.

Three significant digits, ordinary rounding, a space before the unit, a true minus sign. What is
not there is shown as ``–``, what is not a number as ``nan``: never as zero.
"""

import math
from datetime import UTC, datetime

ABSENT = "–"
MINUS = "−"

_FARTHEST = 10.0
_LATENCIES = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
_SIZES = ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB"), (2.0**40, "TiB"))
_BANDWIDTHS = ((1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s"))
_PREFIXES = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
_WORK = tuple((factor, f"{prefix}flop") for factor, prefix in _PREFIXES)
_RATES = tuple((factor, f"{unit}/s") for factor, unit in _WORK)


def format_latency(latency_ns: float | None) -> str:
    """Write nanoseconds in the unit that reads best: ``12.3 µs``, ``1.23 ms``."""
    return _scale(latency_ns, _LATENCIES)


def format_bytes(size_bytes: float | None) -> str:
    """Write a number of bytes in binary units: ``512 B``, ``1.50 GiB``."""
    if size_bytes is not None and float(size_bytes).is_integer() and abs(size_bytes) < 1024:
        return f"{int(size_bytes)} B"
    return _scale(size_bytes, _SIZES)


def format_bandwidth(bytes_per_s: float | None) -> str:
    """Write bytes a second in decimal units, as makers of memory do: ``4.21 TB/s``."""
    return _scale(bytes_per_s, _BANDWIDTHS)


def format_work(flops: float | None) -> str:
    """Write a number of floating-point operations: ``18.9 Mflop``."""
    return _scale(flops, _WORK)


def format_rate(flops_per_s: float | None) -> str:
    """Write floating-point operations a second: ``48.1 Tflop/s``."""
    return _scale(flops_per_s, _RATES)


def format_intensity(flops_per_byte: float | None) -> str:
    """Write floating-point operations a byte: ``22.3 flop/B``."""
    return _scale(flops_per_byte, ((1.0, "flop/B"),))


def format_ratio(ratio: float | None) -> str:
    """Write one amount in units of another of its kind: ``0.73``, ``12.4``."""
    if ratio is None:
        return ABSENT
    if ratio < 0.095:
        return f"{ratio:.2g}"
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else _whole(ratio)


def format_share(share: float | None) -> str:
    """Write a part of a whole: ``38 %``, ``4.2 %``, ``0.07 %``."""
    if share is None:
        return ABSENT
    if not math.isfinite(share):
        return str(share)
    percent = share * 100.0
    if percent < 0.095:
        return f"{percent:.1g} %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{_whole(percent)} %"


def format_change(ratio: float | None) -> str:
    """Write contender over baseline as a change: 1.032 is ``+3.2 %``, 0.989 is ``−1.1 %``."""
    return ABSENT if ratio is None else f"{_percent(ratio)} %"


def format_visible(share: float) -> str:
    """Write the smallest slow-down that could have been seen, a share of 1: ``+11.4 %``.

    Where it is beyond ten times as much it is no figure: next to nothing would have been seen.
    """
    return "more than ten times" if 1.0 + share > _FARTHEST else format_change(1.0 + share)


def format_half_width(share: float | None) -> str:
    """Write half an interval in units of its middle: ``±0.52 %``, ``±2.4 %``, ``> ±900 %``."""
    if share is None:
        return ABSENT
    if share < 0.00995:
        return f"±{100.0 * share:.2f} %"
    beyond = 1.0 + share > _FARTHEST
    return f"{'> ' if beyond else ''}±{_percent(min(1.0 + share, _FARTHEST))[1:]} %"


def format_interval(interval: tuple[float, float] | None) -> str:
    """Write an interval of ratios as changes: ``[+1.0, +5.4] %``.

    One that reaches beyond ten times as much to either side of its middle knows next to nothing,
    and no figure of it is beyond that: ``[< −90.0, > +900] %``.
    """
    if interval is None:
        return ABSENT
    low, high = interval
    knows_little = high > low * _FARTHEST**2
    low_text = f"< {_percent(1.0 / _FARTHEST)}" if low * _FARTHEST < 1.0 else _percent(low)
    high_text = f"> {_percent(_FARTHEST)}" if high > _FARTHEST else _percent(high)
    if knows_little and low < 1.0 < high:
        return f"[{low_text}, {high_text}] %"
    return f"[{_percent(low)}, {_percent(high)}] %"


def format_multiple(ratio: float | None) -> str:
    """Write how many times as much: ``4.2×``, ``0.31×``, ``812×``."""
    if ratio is None:
        return ABSENT
    if not math.isfinite(ratio):
        return str(ratio)
    if ratio < 0.995:
        return f"{ratio:.2f}×" if ratio >= 0.095 else f"{ratio:.2g}×"
    text = f"{ratio:.1f}"
    return f"{text}×" if len(text) <= 4 else f"{_whole(ratio)}×"


def format_duration(duration_s: float | None) -> str:
    """Write seconds as people say them: ``3.2 s``, ``42 s``, ``1 m 12 s``, ``4 m``, ``2 h 5 m``."""
    if duration_s is None:
        return ABSENT
    if not math.isfinite(duration_s):
        return str(duration_s)
    if duration_s < 9.95:
        return f"{duration_s:.1f} s"
    whole_s = round(duration_s)
    if whole_s < 60:
        return f"{whole_s} s"
    if whole_s < 3600:
        return f"{whole_s // 60} m {whole_s % 60} s".removesuffix(" 0 s")
    whole_m = round(duration_s / 60)
    return f"{whole_m // 60} h {whole_m % 60} m".removesuffix(" 0 m")


def format_date(moment: datetime) -> str:
    """Write a moment to the minute, in UTC: ``2026-03-01 14:05Z``.

    Raises ValueError for a moment without a time zone: it could mean any hour.
    """
    return f"{_in_utc(moment):%Y-%m-%d %H:%MZ}"


def format_second(moment: datetime) -> str:
    """Write a moment to the second, as ``format_date``: ``2026-03-01 14:05:09Z``."""
    return f"{_in_utc(moment):%Y-%m-%d %H:%M:%SZ}"


def shorten_sha(sha: str) -> str:
    """Cut a commit's SHA to its first ten characters."""
    return sha[:10]


def format_spread(share: float) -> str:
    """Write a relative standard deviation, a share of 1, in percent: ``0.52 %``, ``12.3 %``."""
    return f"{_three_digits(100.0 * share)} %" if share >= 0.01 else f"{100.0 * share:.2f} %"


def format_error(error: float | None) -> str:
    """Write an error against the reference, two digits: ``9.3e-05``; exactly none is ``0``."""
    if error is None:
        return ABSENT
    return "0" if error == 0 else f"{error:.1e}"


def format_error_range(low: float, high: float) -> str:
    """Write the least and the most of some errors: ``0.9–1.1e-04``; as one where they are."""
    low_text, high_text = format_error(low), format_error(high)
    if low_text == high_text:
        return high_text
    exponent = high_text.partition("e")[2]
    if not exponent or not high / 100 < low <= high:
        return f"{low_text}–{high_text}"
    return f"{low / 10.0 ** int(exponent):.1f}–{high_text}"


def format_number(number: float) -> str:
    """Write a number that has no unit: ``598``, ``4.25``, ``12,345``."""
    if not abs(number) < 1e6:
        return f"{number:.2e}"
    return f"{float(_three_digits(number)):,g}"


def format_count(count: int) -> str:
    """Write a number of things, in groups of three digits: ``12,345``."""
    return f"{count:,}"


def count_things(count: int, one: str, many: str = "") -> str:
    """Write how many of something: ``1 run``, ``2 runs``, ``3 passes`` with ``many`` so given."""
    return f"{format_count(count)} {choose_number(count, one, many)}"


def choose_number(count: int, one: str, many: str = "") -> str:
    """Choose the word for so many of something: ``run`` of one, else ``runs`` or ``many``."""
    return one if count == 1 else many or f"{one}s"


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC)


def _scale(amount: float | None, units: tuple[tuple[float, str], ...]) -> str:
    if amount is None:
        return ABSENT
    if not math.isfinite(amount):
        return str(amount)
    for factor, unit in units:
        text = _three_digits(amount / factor)
        if float(text) < 1000:
            return f"{text} {unit}"
    return f"{_whole(amount / units[-1][0])} {units[-1][1]}"


def _three_digits(amount: float) -> str:
    if amount < 0.9995:
        return f"{amount:.3g}"
    for decimals in (2, 1):
        text = f"{amount:.{decimals}f}"
        if len(text) <= 4:
            return text
    return f"{amount:.0f}"


def _whole(amount: float) -> str:
    """Without decimals in groups of three digits; of what is beyond all sense two digits."""
    return f"{amount:,.0f}" if amount < 1e9 else f"{amount:.1e}"


def _percent(ratio: float) -> str:
    percent = (ratio - 1.0) * 100.0
    size = abs(percent)
    text = f"{size:.1f}" if size < 99.95 else f"{size:,.0f}" if size < 1e6 else f"{size:.1e}"
    if text == "0.0":
        return text
    return f"{MINUS if percent < 0 else '+'}{text}"
