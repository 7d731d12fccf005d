"""Which files of a remote's branches are known to be the store's own runs: none is read twice."""

import hashlib
import uuid
from pathlib import Path


class Notes:
    """The SHAs of files by their paths, in a file of one line each.

    ``origins`` say whose notes they are. What is not noted is looked at again, so that a file which
    is lost, damaged or cannot be written costs time only.
    """

    def __init__(self, folder: Path, *origins: str) -> None:
        name = hashlib.sha256("\n".join(origins).encode("utf-8", "surrogateescape")).hexdigest()
        self._path = folder / name[:32]
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        self._shas = {path: sha for sha, _, path in (line.partition(" ") for line in lines)}

    def sha(self, path: str) -> str | None:
        """The SHA of the file at a path that is a run of the store; None where none is known."""
        return self._shas.get(path)

    def add(self, path: str, sha: str) -> None:
        """Note that a file is a run of the store."""
        self._shas[path] = sha

    def save(self) -> None:
        """Write them down."""
        text = "".join(f"{sha} {path}\n" for path, sha in sorted(self._shas.items()))
        temporary = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.write_text(text, encoding="utf-8")
                temporary.replace(self._path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError:
            return
