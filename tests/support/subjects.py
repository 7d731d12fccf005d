"""A kernel's only variant as it is checked: built, loaded and tied to its first case."""

from pathlib import Path

from perfci.build import Build, build
from perfci.checking.check import Subject
from perfci.checking.inputs import load_reference
from perfci.config import load_config
from perfci.entry import load_entry
from perfci.kernel import discover


def build_subject(root: Path, *, device: str = "cpu") -> tuple[Build, Subject]:
    """The build and the subject of the kernel that scratch has written to ``root``."""
    config = load_config(root, environment={}, cache=str(root / "cache"))
    (kernel,) = discover(config.kernels)
    (built,) = build(kernel.variants, config)
    return built, Subject(
        entry=load_entry(built),
        reference=load_reference(kernel),
        kernel=kernel,
        case=kernel.cases[0],
        device=device,
    )
