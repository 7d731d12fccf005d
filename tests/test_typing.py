"""The type checker sees what the linked folders hold, not only what lies under perfci/."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_PLANTED = 'planted: int = "no number"\n'


@pytest.mark.parametrize("folder", ["history", "dashboard"])
def test_a_planted_type_error_in_a_linked_folder_is_found(folder: str, tmp_path: Path) -> None:
    (tmp_path / "perfci").mkdir()
    (tmp_path / "perfci" / "__init__.py").touch()
    (tmp_path / "perfci" / folder).symlink_to((_ROOT / "perfci" / folder).readlink())
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "__init__.py").touch()
    (tmp_path / folder / "planted.py").write_text(_PLANTED, encoding="utf-8")
    shutil.copy(_ROOT / "pyproject.toml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert f"perfci/{folder}/planted.py:1: error: Incompatible types" in done.stdout
