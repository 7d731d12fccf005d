"""The studies of noise that a store has, as the floor of decisions."""

from collections.abc import Collection

from perfci.decision.compare import Floors
from perfci.decision.noise import find_floors, find_studies
from perfci.history.stores import Store


def read_floors(store: Store, testbeds: Collection[str]) -> Floors:
    """The floor of each cell that was studied on one of these testbeds."""
    runs = [run for run in store.runs(studies=True) if run.environment.testbed in testbeds]
    studies = find_studies(runs)
    ids = [run.run_id for study in studies for run in study]
    return find_floors(studies, store.cells(run_ids=ids)) if ids else {}
