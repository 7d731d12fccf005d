"""Draw a kernel's variants as a ladder: latency and error of each, from a recorded run.

    python docs/draw_ladder.py examples/h200/750e966029-20261130T044328-279eb1df.json.gz \
        mla_kv_projection docs/pictures/ladder-mla_kv_projection.svg

A rung is a variant at the headline shape, the slowest first; a library's ways are grey and hollow.
Errors are root mean squares against float64, over that of the library in float32.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from perfci import units
from perfci.history.codec import read_run_file
from perfci.history.model import Run
from perfci.history.summary import cell

CASE, TIMER, LIBRARY, LIBRARY_PREFIX = "headline", "hot", "torch_eager", "torch_"
_ROW, _TOP, _BOTTOM, _WIDTH = 25, 66, 30, 800
_LATENCY_X, _ERROR_X = (150.0, 520.0), (580.0, 720.0)
_LOW, _LARGEST_RATIO = 3, 2.0
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #222 }
.title { font-weight: 600 }
.small { font-size: 11px; fill: #666 }
.end { text-anchor: end }
.middle { text-anchor: middle }
line { stroke: #ccc }
.own { fill: #0072b2; stroke: #0072b2 }
.library { fill: #fff; stroke: #777 }"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A variant: its latency, and its error over that of the library in float32."""

    variant: str
    latency_ns: float
    error_ratio: float


def main() -> None:
    """Read the run and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run_file", type=Path)
    parser.add_argument("kernel")
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    run = read_run_file(options.run_file)
    options.picture.write_text("\n".join(draw(run, options.kernel)) + "\n", encoding="utf-8")


def read_rungs(run: Run, kernel: str) -> list[Rung]:
    """The variants of a kernel that were timed at the headline shape, the slowest first."""
    found = {}
    for each in run.measurements:
        timer = each.contract.timer if each.contract else None
        if (each.kernel, each.case, timer) == (kernel, CASE, TIMER) and each.passes:
            found[each.variant] = cell(run.run_id, each)
    errors = {name: each.metric("rms_error") for name, each in found.items()}
    library = errors[LIBRARY]
    assert library is not None
    rungs = [
        Rung(
            variant=name,
            latency_ns=each.latency.typical_ns,
            error_ratio=error.value / library.value,
        )
        for name, each in found.items()
        if each.latency and (error := errors[name])
    ]
    return sorted(rungs, key=lambda rung: -rung.latency_ns)


def draw(run: Run, kernel: str) -> Iterator[str]:
    """The lines of the picture, an SVG."""
    rungs = read_rungs(run, kernel)
    bottom = _TOP + _ROW * len(rungs)
    height = bottom + _BOTTOM
    about = f"{run.environment.device.model}, {run.commit.sha[:10]}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img">'
    )
    yield f"<title>{escape(f'{kernel} at its headline shape: latency and error')}</title>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    yield _text(10, 20, f"{kernel}, {CASE} shape", "title")
    yield _text(_WIDTH - 10, 20, about, "small end")
    yield _text(_LATENCY_X[0], 42, f"latency, {TIMER} (logarithmic)", "small")
    yield _text(_ERROR_X[0], 42, "error over the library's", "small")
    longest = max(rung.latency_ns for rung in rungs)
    for tick_ns in _ticks(longest):
        yield from _grid(_latency_x(tick_ns, longest), bottom, units.format_latency(tick_ns))
    for ratio in (0.0, 1.0, _LARGEST_RATIO):
        yield from _grid(_error_x(ratio), bottom, units.format_number(ratio))
    for row, rung in enumerate(rungs):
        yield from _rung(rung, _TOP + _ROW * row + _ROW / 2, longest)
    yield "</svg>"


def _rung(rung: Rung, y: float, longest_ns: float) -> Iterator[str]:
    kind = "library" if rung.variant.startswith(LIBRARY_PREFIX) else "own"
    start, end = _LATENCY_X[0], _latency_x(rung.latency_ns, longest_ns)
    yield _text(start - 8, y + 4, rung.variant, "end")
    yield f'<line x1="{start:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}"/>'
    yield _dot(end, y, kind)
    yield _text(end + 10, y + 4, units.format_latency(rung.latency_ns))
    x = _error_x(min(rung.error_ratio, _LARGEST_RATIO))
    beyond = "→ " if rung.error_ratio > _LARGEST_RATIO else ""
    yield _dot(x, y, kind)
    yield _text(x + 10, y + 4, beyond + units.format_multiple(rung.error_ratio), "small")


def _dot(x: float, y: float, kind: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{kind}"/>'


def _grid(x: float, bottom: float, label: str) -> Iterator[str]:
    yield f'<line x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom}"/>'
    yield _text(x, bottom + 16, label, "small middle")


def _ticks(longest_ns: float) -> Sequence[float]:
    """1, 10, 100 … µs, as far as the axis goes."""
    return [10.0**power for power in range(_LOW, math.floor(_high(longest_ns)) + 1)]


def _high(longest_ns: float) -> float:
    """Where the axis of latencies ends, as a power of ten: half powers, so that little is empty."""
    return math.ceil(2 * math.log10(longest_ns)) / 2


def _latency_x(latency_ns: float, longest_ns: float) -> float:
    share = (math.log10(latency_ns) - _LOW) / (_high(longest_ns) - _LOW)
    return _along(_LATENCY_X, share)


def _error_x(ratio: float) -> float:
    return _along(_ERROR_X, ratio / _LARGEST_RATIO)


def _along(span: tuple[float, float], share: float) -> float:
    return span[0] + share * (span[1] - span[0])


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{escape(text)}</text>'


if __name__ == "__main__":
    main()
