"""Make a repository whose history is known: four commits, one slower, one wrong at one shape.

The kernels are this checkout's; what the commits change is one variant of `mla_kv_projection`:

1. as it is here;
2. two warps a block instead of four: slower everywhere;
3. four warps again, but never more than 2048 blocks: the tokens beyond are not written, which
   only the case `many_tokens` has;
4. a block for every token again: as in 1.

    python examples/planted_history.py /tmp/planted
    cd /tmp/planted && perfci run --range start..main
"""

import argparse
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
VARIANT = "kernels/mla_kv_projection/warp_shuffle.cu"
START = "2026-01-05T12:00:00+00:00"
STEPS = (
    ("Use two warps a block", (("WARPS = 4", "WARPS = 2"),)),
    (
        "Use four warps again and cap the grid",
        (
            ("WARPS = 2", "WARPS = 4"),
            ("{p.tokens, THREADS", "{p.tokens < 2048 ? p.tokens : 2048, THREADS"),
        ),
    ),
    (
        "Launch a block for every token again",
        (("{p.tokens < 2048 ? p.tokens : 2048, THREADS", "{p.tokens, THREADS"),),
    ),
)


def main() -> None:
    """Make the repository in the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    make(parser.parse_args().folder)


def make(folder: Path) -> list[str]:
    """Make the repository in a new folder and return the SHAs of its commits, oldest first.

    The branch `start` names an empty commit before the first, so that `start..main` is all four.
    """
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    _git(folder, "branch", "start")
    ignored = shutil.ignore_patterns("wrong", "__pycache__")
    shutil.copytree(HERE / "kernels", folder / "kernels", ignore=ignored)
    (folder / "pyproject.toml").write_text("[tool.perfci]\n", encoding="utf-8")
    shas = [_commit(folder, "Add the kernels")]
    for message, replacements in STEPS:
        _replace(folder / VARIANT, replacements)
        shas.append(_commit(folder, message))
    return shas


def _replace(path: Path, replacements: tuple[tuple[str, str], ...]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in replacements:
        if text.count(old) != 1:
            raise SystemExit(f"{path}: {old!r} stands there {text.count(old)} times, not once")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def _commit(folder: Path, message: str) -> str:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", message)
    return _git(folder, "rev-parse", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    """Run git with nothing of the user's in it, so that equal kernels give equal SHAs."""
    settings = ("user.name=perfci", "user.email=perfci@example.org", "commit.gpgsign=false")
    options = [word for setting in settings for word in ("-c", setting)]
    dates = {"GIT_AUTHOR_DATE": START, "GIT_COMMITTER_DATE": START}
    command = ["env", *(f"{name}={value}" for name, value in dates.items()), "git", *options]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main()
