"""What of a cell's code and launches is not the same in two runs, in a few words each."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from perfci import units
from perfci.decision.code import is_code, is_same_code, told_code
from perfci.decision.compare import Side
from perfci.history.model import OWN_ENVIRONMENT, Cell, Launch, SeriesKey, Status
from perfci.reports.cycles import describe_cycles
from perfci.reports.text import write_extents

_TOLD_SHARE = 0.01
_FIGURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "rms_error": ("RMS error", units.format_error),
    "max_abs_error": ("largest error", units.format_error),
    "peak_memory_bytes": ("peak memory", units.format_bytes),
    "workspace_bytes": ("workspace", units.format_bytes),
}
"""Metrics that are told where they change by more than a hundredth."""

FIGURE_WORDS = tuple(words for words, _ in _FIGURES.values())
"""How what is said of a metric begins."""

SAME_CODE = "the same code"
"""How it begins where nothing differs."""

Differences = Mapping[SeriesKey, Sequence[str]]
"""What differs between the two sides of a cell; empty where nothing is known to differ."""


def find_differences(baseline: Side, contender: Side) -> Differences:
    """What differs in the cells that both sides have, between the newest that passed of each.

    Behind it stands what the clocks say of the latency.
    """
    before, after = (
        {
            key: passed[-1]
            for key, cells in side.cells_by_key().items()
            if (passed := [each for each in cells if each.status is Status.PASSED])
        }
        for side in (baseline, contender)
    )
    return {
        key: (*describe_differences(one, other), *describe_cycles(one, other))
        for key, one in before.items()
        if (other := after.get(key)) is not None
    }


def describe_differences(before: Cell, after: Cell) -> tuple[str, ...]:
    """Name each difference: ``device code changed``, ``registers 56 → 64``.

    What only one of them tells is no difference. Where both tell their code, nothing of it was left
    unread and nothing differs, it says so.
    """
    told, tells = told_code(before), told_code(after)
    both = [name for name in tells if name in told]
    found = [_describe(name, told[name], tells[name]) for name in both if told[name] != tells[name]]
    found += _describe_launches(before.launches, after.launches)
    if found:
        return tuple(found)
    if not is_same_code(before, after):
        return ()
    launched = ", launched in the same way" if before.launches and after.launches else ""
    return (f"{SAME_CODE}{launched}",)


def describe_figures(before: Cell, after: Cell) -> tuple[str, ...]:
    """Name what changed of a cell's errors and memory, where both were measured on equal inputs."""
    found = []
    for name, (words, write) in _FIGURES.items():
        one, other = before.metric(name), after.metric(name)
        if one is None or other is None or one.value == other.value:
            continue
        if abs(other.value - one.value) > _TOLD_SHARE * one.value:
            found.append(f"{words} {write(one.value)} → {write(other.value)}")
    return tuple(found)


def is_choice(difference: str) -> bool:
    """Whether a difference is one in what a compiler's autotuner chose, as it names them."""
    return difference.startswith("generated calls ") or " configuration " in difference


def _describe(name: str, before: str, after: str) -> str:
    if is_code(name):
        return f"{name} changed"
    if name == OWN_ENVIRONMENT:
        return "another environment"
    parts = zip(before.split(", "), after.split(", "), strict=False)
    settings = [(one.rpartition(" "), other.rpartition(" ")) for one, other in parts]
    if before.count(", ") != after.count(", ") or any(a[0] != b[0] for a, b in settings):
        return f"{name} {before} → {after}"
    changed = [f"{a[0]} {a[2]} → {b[2]}".strip() for a, b in settings if a != b]
    return f"{name} {', '.join(changed)}"


def _describe_launches(before: Sequence[Launch], after: Sequence[Launch]) -> Iterator[str]:
    if not before or not after:
        return
    if len(before) != len(after):
        yield f"launches {_count(before)} → {_count(after)}"
        return
    for number, (one, other) in enumerate(zip(before, after, strict=True), 1):
        changes = [
            f"{name} {text} → {other_text}"
            for (name, text), (_, other_text) in zip(_facts(one), _facts(other), strict=True)
            if text != other_text and units.ABSENT not in (text, other_text)
        ]
        which = f"kernel {number}: " if len(before) > 1 and changes else ""
        yield from [f"{which}{', '.join(changes)}"] if changes else []


def _count(launches: Sequence[Launch]) -> str:
    return units.format_count(len(launches))


def _facts(launch: Launch) -> list[tuple[str, str]]:
    """What of a launch is worth a word where it changes, with what it is."""
    return [
        ("kernel", launch.function),
        ("launch", write_extents(launch)),
        ("registers", units.format_count(launch.registers)),
        ("spills", units.format_bytes(launch.spill_bytes)),
        ("local memory", units.format_bytes(launch.local_bytes)),
        ("shared memory", units.format_bytes(launch.shared_bytes)),
    ]
