"""Which planted kernel must be caught by which rule: the numbers are those of docs/method.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from perfci.history.model import Status

_PRODUCT = "product_tanh"
_NEGATION = "negation"
_LATER = "wrong after it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A planted kernel and its rule: a status, and words that the row's message must have.

    With ``everywhere`` each case must catch it, else one is enough. ``timer`` is the one whose row
    it must be, where not any will do.
    """

    number: int
    variant: str
    title: str
    status: Status
    words: str = ""
    kernel: str = _PRODUCT
    everywhere: bool = False
    timer: str | None = None


def _plant(number: int, variant: str, title: str, status: Status, words: str = "") -> Plant:
    return Plant(number=number, variant=variant, title=title, status=status, words=words)


PLANTS: tuple[Plant, ...] = (
    _plant(1, "returns_early", "returns before its work is done", Status.WRONG_VALUES),
    _plant(
        2, "patches_timer", "patches the clock at import", Status.RUNTIME_ERROR, "replaces time."
    ),
    _plant(3, "cached_by_address", "cached by address", Status.WRONG_VALUES, _LATER),
    _plant(3, "cached_by_stream", "cached by stream", Status.WRONG_VALUES, _LATER),
    _plant(4, "cached_by_content", "cached by content", Status.INVALID_TIMING, "remembers outputs"),
    _plant(5, "one_for_all", "one call does the work of all", Status.WRONG_VALUES, _LATER),
    _plant(6, "lazy_subclass", "lazy tensor subclass", Status.WRONG_SHAPE, "not a plain tensor"),
    _plant(7, "stale_in_graph", "stale output after a replay", Status.WRONG_VALUES, _LATER),
    _plant(8, "empty_graph", "empty graph", Status.INVALID_TIMING, "nothing is launched"),
    Plant(
        number=9,
        variant="waits",
        title="cannot be timed; no other timer instead",
        status=Status.INVALID_TIMING,
        words="waits for the device",
        timer="cold",
    ),
    _plant(11, "tires", "right at first, then wrong", Status.WRONG_VALUES, _LATER),
    Plant(
        number=12,
        variant="zeros",
        title="returns zeros, at every case",
        status=Status.WRONG_VALUES,
        everywhere=True,
    ),
    _plant(13, "writes_nothing", "writes nothing (C++)", Status.WRONG_VALUES, "NaN"),
    _plant(13, "unwritten", "writes nothing (Python)", Status.WRONG_VALUES),
    _plant(14, "changes_input", "changes its input", Status.WRONG_VALUES, "changes its input 'x'"),
    _plant(15, "stream_zero", "launches on stream 0", Status.WRONG_VALUES),
    _plant(16, "dirty_workspace", "dirty workspace", Status.WRONG_VALUES),
    _plant(18, "ignores_strides", "ignores strides", Status.WRONG_VALUES),
    Plant(
        number=19,
        variant="narrow_index",
        kernel=_NEGATION,
        title="32-bit index overflows",
        status=Status.WRONG_VALUES,
        words="NaN",
    ),
    _plant(
        20, "overruns", "writes out of bounds (C++)", Status.WRONG_VALUES, "outside of its output"
    ),
    _plant(
        20,
        "overruns_cuda",
        "writes out of bounds (CUDA)",
        Status.WRONG_VALUES,
        "outside of its output",
    ),
    _plant(21, "broadcasts", "a shape that broadcasts", Status.WRONG_SHAPE, "returned shape"),
    _plant(22, "tf32_everywhere", "yardstick in TF32", Status.WRONG_VALUES),
    _plant(28, "hangs", "hangs (C++)", Status.TIMEOUT, "no answer within"),
    _plant(28, "hangs_cuda", "hangs (CUDA)", Status.TIMEOUT, "no answer within"),
    _plant(28, "faults", "faults (C++)", Status.RUNTIME_ERROR, "SIGSEGV"),
    _plant(28, "faults_cuda", "faults (CUDA)", Status.RUNTIME_ERROR, "CUDA error"),
    _plant(28, "exhausts", "exhausts the memory", Status.RUNTIME_ERROR, "memory"),
    _plant(28, "prints", "prints a gigabyte and exits", Status.RUNTIME_ERROR, "exited with code 3"),
    _plant(28, "forks", "forks and exits", Status.RUNTIME_ERROR, "exited with code 5"),
    _plant(
        29, "races", "a race (threads)", Status.NONDETERMINISTIC, "with the same inputs differs"
    ),
    _plant(
        29, "races_cuda", "a race (CUDA)", Status.NONDETERMINISTIC, "with the same inputs differs"
    ),
    _plant(30, "nan_when_large", "NaN only for large inputs", Status.WRONG_VALUES, "NaN"),
)

APART: Mapping[str, str] = {"pins_input": _NEGATION, "slow_host": _NEGATION}
"""Planted variants, with their kernels, that are right and are judged by their latencies."""
