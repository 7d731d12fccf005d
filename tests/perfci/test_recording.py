"""Which repository a run is filed under: that of the kernels, wherever they lie."""

from pathlib import Path

import scratch


def test_kernels_behind_a_link_out_of_the_repository_are_named(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(tmp_path / "elsewhere", eager__py=scratch.EAGER)
    (root / "kernels").symlink_to(tmp_path / "elsewhere" / "kernels")
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    ended = scratch.perfci(root, "run")
    assert ended.returncode == 2
    kernels = root / "kernels"
    assert ended.stderr.splitlines()[-1] == (
        f"perfci: {kernels} is in no git repository: say which commit this is with --commit SHA"
    )
