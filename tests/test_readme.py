"""The README's own project: its block, taken out and run in an empty folder, ends in a run."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import scratch

_README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
_AUTHOR = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "Test"), ("EMAIL", "test@example.org"))
}


def _block_under(heading: str) -> str:
    """The one block of shell in a section."""
    section = _README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return str(block)


@pytest.mark.long
def test_the_smallest_project_is_recorded_as_the_readme_says(tmp_path: Path) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "", "GIT_CONFIG_GLOBAL": "/dev/null", **_AUTHOR}
    ended = subprocess.run(
        ["bash", "-e", "-c", _block_under("Your own project")],
        cwd=tmp_path,
        env=scratch.environment_with_perfci(tmp_path, variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    root = tmp_path / "axpb"
    assert scratch.git(root, "status", "--porcelain") == ""
    shown = scratch.perfci(root, "show", "--json", variables=variables)
    rows = scratch.rows(json.loads(shown.stdout))
    assert [rows["plain", case]["status"] for case in ("headline", "odd")] == ["passed"] * 2
    assert json.loads(shown.stdout)["commit"]["sha"] == scratch.git(root, "rev-parse", "HEAD")
