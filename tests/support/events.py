"""Recorded events: what a provider's job finds in its variables and files.

The files in ``tests/perfci/ci/events`` are what the providers document. Of GitHub they are
payloads, of GitLab variables. Their SHAs stand for what a test puts in their place.
"""

import json
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "perfci/ci/events"
BASE = "b" * 40
HEAD = "f" * 40
MERGE = "e" * 40
TAG = "d" * 40
"""The object of an annotated tag, which is none of the commits."""

_NAMES = ("pull_request", "workflow_dispatch", "workflow_run", "merge_group", "push")


def github(
    name: str, folder: Path, *, shas: Mapping[str, str] | None = None, **variables: str
) -> dict[str, str]:
    """The variables of a job about a recorded event, its payload written into a folder.

    ``shas`` are what is put in the place of the file's own.
    """
    event = next((each for each in _NAMES if name.startswith(each)), name)
    payload = json.loads(_text(name, shas))
    path = folder / f"{name}.json"
    path.write_text(json.dumps(payload))
    ref = {"pull_request": "refs/pull/7/merge", "push": payload.get("ref", "")}
    sha = MERGE if event == "pull_request" else HEAD
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_EVENT_PATH": str(path),
        "GITHUB_REF": ref.get(event, "refs/heads/main"),
        "GITHUB_REPOSITORY": "example/kernels",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": "6001",
        "GITHUB_SHA": (shas or {}).get(sha, sha),
        **variables,
    }


def gitlab(name: str, *, shas: Mapping[str, str] | None = None, **variables: str) -> dict[str, str]:
    """The variables of a recorded job on GitLab."""
    return {**json.loads(_text(f"gitlab_{name}", shas)), **variables}


def _text(name: str, shas: Mapping[str, str] | None) -> str:
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    for placeholder, sha in (shas or {}).items():
        text = text.replace(placeholder, sha)
    return text
