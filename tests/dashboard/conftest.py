"""Runs of a small kernel along a branch, stores that hold them, and pages as a browser asks."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from stores import make_store

from perfci.dashboard.app import create_app
from perfci.history.model import (
    Clock,
    Commit,
    Contract,
    Device,
    Environment,
    Measurement,
    Metric,
    Pass,
    Run,
    Status,
    Stop,
)

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Make:
    """Makes records; every default is a plain, passing one."""

    @staticmethod
    def commit(position: int, **changes: Any) -> Commit:
        commit = Commit(
            sha=f"{position + 0xA0:02x}" * 20,
            committed_at=START + timedelta(days=position),
            parents=(f"{position + 0x9F:02x}" * 20,) if position else (),
            position=position,
            branch="main",
            subject=f"Step {position}",
        )
        return replace(commit, **changes)

    @staticmethod
    def environment(testbed: str = "bench", **device: Any) -> Environment:
        return Environment(
            testbed=testbed,
            device=Device(kind="cpu", model="Some CPU", core_count=2, **device),
            torch="2.13.0",
            python="3.11.2",
            os="Linux",
            host="host",
        )

    @staticmethod
    def cell(
        variant: str = "plain",
        *,
        latency_ns: float = 10_000.0,
        kernel: str = "scale",
        case: str = "large",
        timer: str | None = "cpu",
        status: Status = Status.PASSED,
        message: str = "",
        error: float | None = 1e-4,
        passes: int = 6,
    ) -> Measurement:
        contract = (
            None
            if timer is None
            else Contract(timer=timer, version=1, l2="warm", warm_up="20 calls", inputs="fresh")
        )
        timed = contract is not None and status is Status.PASSED
        samples = tuple(latency_ns * (1 + step / 1000) for step in (0, 1, -1, 2, -2))
        clock = Clock(sm_mhz=1980.0, temperature_c=41.0, throttle_reasons=("sw_power_cap",))
        return Measurement(
            kernel=kernel,
            case=case,
            variant=variant,
            contract=contract,
            status=status,
            message=message,
            passes=tuple(
                Pass(
                    index=index, samples_ns=samples, loops=3, stop=Stop.STABILISED, clocks=(clock,)
                )
                for index in range(passes if timed else 0)
            ),
            metrics=()
            if error is None
            else (
                Metric(name="max_abs_error", value=error, unit=""),
                Metric(name="yardstick_max_abs_error", value=9e-5, unit=""),
                Metric(name="bytes_moved", value=2048.0, unit="B"),
            ),
        )

    @classmethod
    def run(
        cls,
        position: int,
        cells: Sequence[Measurement] | None = None,
        *,
        testbed: str = "bench",
        attempt: int = 1,
        **commit: Any,
    ) -> Run:
        at = cls.commit(position, **commit)
        return Run(
            run_id=f"{testbed}-{at.sha[:6]}-{attempt}{'-dirty' if at.dirty else ''}",
            commit=at,
            environment=cls.environment(testbed),
            started_at=at.committed_at + timedelta(minutes=attempt),
            duration_s=75.0,
            attempt=attempt,
            measurements=tuple([cls.cell()] if cells is None else cells),
        )


@dataclass(frozen=True)
class Page:
    """One page as the browser gets it: a tree of components."""

    tree: Any
    title: str

    def nodes(self, kind: str = "") -> Iterator[dict[str, Any]]:
        """Every component's properties, of one type or of all."""
        waiting = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting += reversed(node)
            elif isinstance(node, dict):
                if kind in ("", node["type"]):
                    yield node["props"]
                waiting.append(node["props"].get("children"))

    @property
    def text(self) -> str:
        """All that is read on the page, a line an element."""
        children = (node.get("children") for node in self.nodes())
        parts = [part for each in children for part in (each if isinstance(each, list) else [each])]
        return "\n".join(part for part in parts if isinstance(part, str))

    @property
    def hrefs(self) -> list[str]:
        """Where the page's links lead."""
        return [node["href"] for node in self.nodes() if "href" in node]

    def classes(self, name: str) -> list[dict[str, Any]]:
        """The components of one class."""
        return [node for node in self.nodes() if name in (node.get("className") or "").split()]


Ask = Callable[..., Page]


@pytest.fixture
def make() -> type[Make]:
    return Make


@pytest.fixture
def store_with(tmp_path: Path) -> Callable[[Sequence[Run]], str]:
    """Fill a store with runs and return its URL."""

    def fill(runs: Sequence[Run]) -> str:
        url = f"sqlite:///{tmp_path / 'history.db'}"
        with make_store(url) as store:
            for run in runs:
                assert store.add(run)
        return url

    return fill


@pytest.fixture
def ask(store_with: Callable[[Sequence[Run]], str]) -> Callable[..., Ask]:
    """Return, for runs, a function that asks for a page of theirs: ``ask(runs)(path, search)``."""

    def over(runs: Sequence[Run], *, repository_url: str | None = None) -> Ask:
        client = create_app(store_with(runs), repository_url=repository_url).server.test_client()
        assert client.get("/").status_code == 200
        outputs = [each["output"] for each in client.get("/_dash-dependencies").json or []]
        output = next(each for each in outputs if "_pages_content" in each)

        def page(path: str, search: str = "") -> Page:
            location = "_pages_location"
            names = [("_pages_content", "children"), ("_pages_store", "data")]
            answer = client.post(
                "/_dash-update-component",
                json={
                    "output": output,
                    "outputs": [{"id": each, "property": name} for each, name in names],
                    "inputs": [
                        {"id": location, "property": "pathname", "value": path},
                        {"id": location, "property": "search", "value": search},
                    ],
                    "changedPropIds": [f"{location}.pathname"],
                },
            )
            assert answer.status_code == 200, answer.text
            parts = json.loads(answer.text)["response"]
            return Page(
                tree=parts["_pages_content"]["children"],
                title=parts["_pages_store"]["data"]["title"],
            )

        return page

    return over
