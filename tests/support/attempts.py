"""Attempts of a measuring workflow at the head of ``parcels``."""

from typing import Any

import parcels
from github_double import STRANGER

from perfci.ci.attempt import Attempt

OWN = "example/kernels"
FORK = "fork/kernels"


def attempt(**fields: Any) -> Attempt:
    """The first attempt of a run for a pull request from a branch of the repository's own."""
    known: dict[str, Any] = {
        "repository": OWN,
        "kind": "pull_request",
        "head": parcels.HEAD,
        "branch": "topic",
        "head_repository": OWN,
        "run_id": 4711,
        "attempt": 1,
        "created_at": "2026-01-31T12:00:00Z",
        "started_at": "2026-01-31T12:00:00Z",
        "actor": STRANGER,
        "url": f"https://github.com/{OWN}/actions/runs/4711/attempts/1",
        "conclusion": None,
        "pulls": (),
    }
    return Attempt(**{**known, **fields})
