"""What each page can show, as its URL says it; every state knows its own address."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.dashboard import urls

Scale = Literal["linear", "log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewState:
    """Which newest figures are shown. Empty means all testbeds, and each one's first timer."""

    testbed: str = ""
    timer: str = ""

    @property
    def href(self) -> str:
        """The address of this state."""
        return urls.overview_url(self.testbed, self.timer)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelState:
    """What the page shows of a kernel, as its URL says it. An empty testbed means all of them.

    ``variants`` are those that are drawn; empty until somebody chooses.
    """

    kernel: str
    testbed: str = ""
    case: str = ""
    timer: str = ""
    branch: str = ""
    scale: Scale = "linear"
    commits: str = ""
    variants: tuple[str, ...] = ()

    @property
    def href(self) -> str:
        """The address of this state."""
        return urls.kernel_url(
            self.kernel,
            testbed=self.testbed,
            case=self.case,
            timer=self.timer,
            branch=self.branch,
            scale="log" if self.scale == "log" else "",
            commits=self.commits,
            variant=self.variants,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChoice:
    """What there is to choose from for a kernel."""

    testbeds: Sequence[str]
    cases: Sequence[str]
    timers: Sequence[str]
    branches: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What the page shows of a run, as its URL says it. ``row`` counts from 1."""

    run_id: str
    text: str = ""
    status: str = ""
    sort: str = "row"
    descending: bool = False
    row: int | None = None

    @property
    def href(self) -> str:
        """The address of this state."""
        return urls.run_url(
            self.run_id,
            text=self.text,
            status=self.status,
            sort="" if self.sort == "row" else self.sort,
            order="descending" if self.descending else "",
            row="" if self.row is None else str(self.row),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsState:
    """Which runs are listed, as the URL says it; ``page`` counts from 1."""

    testbed: str = ""
    sha: str = ""
    page: int = 1

    @property
    def href(self) -> str:
        """The address of this state."""
        page = "" if self.page == 1 else str(self.page)
        return urls.runs_url(testbed=self.testbed, sha=self.sha, page=page)
