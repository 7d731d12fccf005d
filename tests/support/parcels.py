"""Parcels as a runner would leave them, to be read by whoever merges them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gates
import records

from perfci.ci.act import Act
from perfci.ci.judgement import Judgement
from perfci.ci.parcel import Parcel, Step, write_parcel
from perfci.gate.verdicts import Gate
from perfci.history.codec import write_run_file
from perfci.history.plain import record
from perfci.history.text import one_line
from perfci.reports.gate_json import gate_values

BASE = "b" * 40
HEAD = "f" * 40


def judgement(gate: Gate | None = None) -> Judgement:
    """A gate as another machine reads it; of its head's subject, what reading git leaves of it."""
    gate = gate or gates.mixed_gate()
    gate = replace(gate, head=replace(gate.head, subject=one_line(gate.head.subject)))
    values = gate_values(gate, fail_on_inconclusive=False)
    return record(Judgement, json.loads(json.dumps(values, allow_nan=False)))


def step(name: str = "gate", **fields: Any) -> Step:
    """A step that went well."""
    known = {"name": name, "exit_code": 0, "duration_s": 1.5, "error": "", "log": f"{name}.log"}
    return Step(**{**known, **fields})


def parcel(**fields: Any) -> Parcel:
    """A parcel of a gate that called one cell slower."""
    known: dict[str, Any] = {
        "runner": "h200",
        "act": Act.GATE,
        "base": BASE,
        "head": HEAD,
        "run_id": "4711",
        "attempt": 1,
        "exit_code": 1,
        "error": "",
        "perfci_version": "0.0",
        "gates": (judgement(),),
        "steps": (step(exit_code=fields.get("exit_code", 1)),),
    }
    return Parcel(**{**known, **fields})


def write(folder: Path, parcel: Parcel) -> Path:
    """A folder with a parcel and the files that it names; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in parcel.files:
        if name in parcel.runs:
            write_run_file(folder / name, records.run())
        else:
            (folder / name).write_text(f"what {name} holds\n")
    write_parcel(folder, parcel)
    return folder
