"""On a real GPU: CUDA_VISIBLE_DEVICES in each of its forms, as a user meets it."""

import json
from pathlib import Path

import pytest
import scratch

from perfci.config import child_environment
from perfci.device import has_gpu_driver
from perfci.workers.passes import PassServer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = scratch.quick(tmp_path_factory.mktemp("visible") / "root")
    scratch.write_kernel(root, eager__py=scratch.EAGER)
    return root


def test_a_gpu_that_is_named_by_its_uuid_is_the_one_that_is_measured(root: Path) -> None:
    first = PassServer(child_environment(root / "cache")).probe_gpus()[0]
    assert first.uuid is not None
    for value in ("0", first.uuid):
        run = ("run", "--device", "0", "--commit", "abcdef1", "--json", "--out", root / "run.json")
        ended = scratch.perfci(root, *run, variables={"CUDA_VISIBLE_DEVICES": value})
        assert ended.returncode == 0, ended.stderr
        told = json.loads(ended.stdout)
        assert told["environment"]["device"]["uuid"] == first.uuid
        assert {row["status"] for row in told["measurements"]} == {"passed"}


@pytest.mark.parametrize("value", ["", "99", "GPU-00000000-0000-0000-0000-000000000000"])
def test_a_value_that_leaves_no_gpu_is_named(root: Path, value: str) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": value}
    ended = scratch.perfci(root, "check", "--device", "0", variables=variables)
    assert ended.returncode == 5, ended.stdout + ended.stderr
    assert f"CUDA_VISIBLE_DEVICES={value!r} leaves none" in ended.stderr
