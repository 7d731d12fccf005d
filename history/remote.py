"""A remote of a repository, read and written without a trace in that repository.

Everything goes through a bare repository of its own, gone afterwards: a shallow or blobless fetch
would turn the user's clone into a shallow or partial one. It reaches the remote as the user's
repository does, by the settings that say how, which it is handed in its environment, since tokens
may be among them. What comes from there is read, never checked out.
"""

import hashlib
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from perfci.history.errors import OvertakenError, SyncError, UnreachableError
from perfci.history.git import GitAnswer, ask_git
from perfci.history.text import one_line

_SCOPES = ("local", "worktree", "command")
"""Where settings stand that another repository of the same user does not have by itself."""
_REACHING = re.compile(
    r"(credential|http|protocol|ssh|url)\..*|core\.(askpass|gitproxy|sshcommand)", re.DOTALL
)
_OF_A_REMOTE = ("proxy", "proxyauthmethod", "pushurl", "receivepack", "uploadpack", "url")
_ALWAYS = (
    ("protocol.version", "2"),  # which lets single objects be asked for
    ("http.lowspeedlimit", "1000"),
    ("http.lowspeedtime", "60"),
)
_BRANCHES = "refs/heads/"
_REFUSED = re.compile(
    "denied|declined|protected|prohibited|forbidden|permission|read-only|not allowed"
    "|authentication failed|could not read username|error: 40[13]|does not exist|not found"
    "|not appear to be a git repository|unpacker error",
    re.IGNORECASE,
)
_OVERTAKEN = re.compile(
    r"\[rejected\]|cannot lock ref|failed to (update|lock)|reference already exists"
    "|incorrect old value|cannot create .*lock",
    re.IGNORECASE,
)
_ELSEWHERE = "set TMPDIR to a folder with room"
_NO_BRANCH = "couldn't find remote ref"
_PUSH_FAILED = re.compile(r"\s*error: failed to push some refs.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a folder of a commit holds under a name: ``kind`` is blob, tree or commit."""

    name: str
    mode: str
    kind: str
    sha: str

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file: no link, no program, no repository."""
        return self.mode == "100644"

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.kind == "tree"


@contextmanager
def open_remote(root: Path, name: str) -> "Iterator[Remote]":
    """The remote of that name of the repository with this working tree.

    Raises SyncError where there is none, CommitError where git itself cannot be run.
    """
    settings = _settings(root)
    names = [key[7:-4] for key, _ in settings if re.fullmatch(r"remote\..*\.url", key, re.DOTALL)]
    if name not in names:
        known = f"there are {', '.join(dict.fromkeys(names))}" if names else "there is none"
        command = f"git remote add {shlex.quote(one_line(name, limit=80))} URL"
        raise SyncError(
            f"{one_line(str(root))} has no remote {one_line(repr(name), limit=80)} "
            f"({one_line(known)}): add it with {command}"
        )
    urls = [value for key, value in settings if key == f"remote.{name}.url"]
    own = {f"remote.{name}.{each}" for each in _OF_A_REMOTE}
    reaching = [each for each in settings if each[0] in own or _REACHING.fullmatch(each[0])]
    with _temporary_folder() as folder:
        yield Remote(root, name, urls[0], Path(folder), _as_variables([*_ALWAYS, *reaching]))


def _temporary_folder() -> "TemporaryDirectory[str]":
    try:
        return TemporaryDirectory(prefix="perfci-", ignore_cleanup_errors=True)
    except OSError as error:
        raise SyncError(
            f"no temporary folder can be made: {error.strerror}; {_ELSEWHERE}"
        ) from None


class Remote:
    """A remote; where it cannot be reached, methods raise UnreachableError, else SyncError."""

    def __init__(
        self, root: Path, name: str, url: str, folder: Path, variables: Mapping[str, str]
    ) -> None:
        self.name = name
        self.url = url
        self._root = root
        self._folder = folder
        self._variables = variables
        self._commits = 0
        answer = ask_git(root, "rev-parse", "--show-object-format")
        self._hash_name = answer.output if answer.status == 0 else "sha1"
        self._local(
            "init", "--quiet", "--bare", "--template=", f"--object-format={self._hash_name}"
        )

    def branches(self, pattern: str) -> list[str]:
        """The names of the remote's branches that match a pattern such as ``history-*``."""
        listing = self._reach("be read", "ls-remote", "--quiet", self.name, _BRANCHES + pattern)
        references = [line.partition("\t")[2] for line in listing.splitlines()]
        return [each.removeprefix(_BRANCHES) for each in references if each.startswith(_BRANCHES)]

    def fetch(self, branch: str) -> str | None:
        """The SHA of a branch's commit, brought here without history and files; None without it."""
        reference = f"refs/tips/{branch}"
        wanted = f"+{_BRANCHES}{branch}:{reference}"
        shallow = ("--depth=1", "--filter=blob:none")
        answer = self._git("fetch", *_PLAINLY, *shallow, self.name, wanted)
        if answer.status != 0:
            if _NO_BRANCH in answer.complaint:
                return None
            self._raise("be fetched", answer, branch)
        return self._local("rev-parse", "--verify", reference)

    def entries(self, tree: str) -> list[Entry]:
        """What a folder (or the root of a commit) holds, and not what its folders hold."""
        found = []
        for line in self._local("ls-tree", "-z", tree).split("\0")[:-1]:
            described, _, name = line.partition("\t")
            mode, kind, sha = described.split(" ")
            found.append(Entry(name=name, mode=mode, kind=kind, sha=sha))
        return found

    def bring(self, blobs: Sequence[str]) -> dict[str, int]:
        """Bring files here by their SHAs, all at once; how many bytes each has."""
        # Else the remote would take it that whoever has the commit has its files.
        anew = ("-c", "fetch.negotiationAlgorithm=noop")
        self._reach("be read", *anew, "fetch", *_PLAINLY, "--filter=blob:none", self.name, *blobs)
        answer = self._fed("\n".join([*blobs, ""]).encode(), "cat-file", "--batch-check")
        rows = [line.split(" ") for line in answer.splitlines()]
        return {row[0]: int(row[2]) for row in rows if row[1:2] == ["blob"]}

    def read(self, blob: str) -> bytes:
        """The contents of a file that was brought here."""
        answer = self._fed(f"{blob}\n".encode(), "cat-file", "--batch")
        return answer.partition("\n")[2].encode("utf-8", "surrogateescape")

    def push(self, branch: str, parent: str | None, files: Mapping[str, bytes]) -> str:
        """Add files by their paths, which are plain ASCII, to a branch whose commit is ``parent``.

        The SHA of the new commit. Raises OvertakenError where the branch has moved on.
        """
        self._commits += 1
        reference = f"refs/commits/{self._commits}"
        self._fed(_commit_stream(reference, parent, files), "fast-import", "--quiet")
        answer = self._git(
            "push",
            "--porcelain",
            "--no-follow-tags",
            "--recurse-submodules=no",
            self.name,
            f"{reference}:{_BRANCHES}{branch}",
        )
        if answer.status != 0:
            self._raise("be pushed to", answer, branch)
        return self._local("rev-parse", "--verify", reference)

    def blob_sha(self, contents: bytes) -> str:
        """The SHA that these contents have as a file here."""
        digest = hashlib.new(self._hash_name, b"blob %d\0" % len(contents), usedforsecurity=False)
        digest.update(contents)
        return digest.hexdigest()

    def _git(self, *arguments: str, reads: Path | None = None) -> GitAnswer:
        # In the folder of the user's repository, from which the path of a remote may be taken.
        own = f"--git-dir={self._folder / 'git'}"
        return ask_git(self._root, own, *arguments, variables=self._variables, reads=reads)

    def _local(self, *arguments: str, reads: Path | None = None) -> str:
        answer = self._git(*arguments, reads=reads)
        if answer.status != 0:
            raise SyncError(f"git {arguments[0]} in {self._folder}: {answer.complaint}")
        return answer.output

    def _fed(self, text: bytes, *arguments: str) -> str:
        reads = self._folder / "input"
        try:
            reads.write_bytes(text)
        except OSError as error:
            problem = f"{reads} cannot be written: {error.strerror}"
            raise SyncError(f"{problem}; {_ELSEWHERE}") from None
        return self._local(*arguments, reads=reads)

    def _reach(self, verb: str, *arguments: str) -> str:
        answer = self._git(*arguments)
        if answer.status != 0:
            self._raise(verb, answer)
        return answer.output

    def _raise(self, verb: str, answer: GitAnswer, branch: str = "") -> NoReturn:
        where = f"branch {branch} of {self.name}" if branch else f"remote {self.name}"
        rows = [each.split("\t") for each in answer.output.splitlines() if each.startswith("!")]
        said = [*(row[-1] for row in rows), _PUSH_FAILED.sub("", answer.complaint)]
        complaint = one_line("; ".join(each for each in said if each))
        problem = f"{one_line(where)} cannot {verb}: {complaint}"
        # What git says of the push by itself comes first: a hook may say anything beside it.
        for spoken in (" ".join(row[-1] for row in rows), answer.complaint):
            if _OVERTAKEN.search(spoken):
                raise OvertakenError(
                    f"{problem}; others were faster again and again: try again later"
                )
            if _REFUSED.search(spoken):
                raise SyncError(
                    f"{problem}; see to it that it is there and that you may read and push"
                )
        raise UnreachableError(f"{problem}; once it can be reached, run the same command again")


_PLAINLY = (
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-recurse-submodules",
    "--no-auto-maintenance",
)


def _settings(root: Path) -> list[tuple[str, str]]:
    """All settings of a repository's own, in order."""
    answer = ask_git(root, "config", "--list", "--null", "--show-scope")
    if answer.status != 0:
        raise SyncError(f"{one_line(str(root))}: {answer.complaint}")
    fields = answer.output.split("\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    settings = [setting.partition("\n") for scope, setting in pairs if scope in _SCOPES]
    return [(key, value if line_end else "true") for key, line_end, value in settings]


def _as_variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings as git takes them from its environment."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(settings):
        variables[f"GIT_CONFIG_KEY_{index}"] = key
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    return variables


def _commit_stream(reference: str, parent: str | None, files: Mapping[str, bytes]) -> bytes:
    """A commit that adds files, as ``git fast-import`` reads it."""
    subject = f"Add {len(files)} runs" if len(files) > 1 else f"Add {next(iter(files))}"
    parts = [
        f"commit {reference}\ncommitter perfci <perfci@localhost> {int(time.time())} +0000\n"
        f"data {len(subject)}\n{subject}\n".encode()
    ]
    if parent is not None:
        parts.append(f"from {parent}\n".encode())
    for path, contents in files.items():
        parts += [f"M 100644 inline {path}\ndata {len(contents)}\n".encode(), contents, b"\n"]
    return b"".join(parts)
