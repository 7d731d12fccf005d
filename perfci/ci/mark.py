"""What a report of perfci's is known by: hidden in a comment, and the external id of a check run.

It says of which check, commit, run and attempt the report is, so that two projects in a repository
have a comment each, and what is older never replaces what is newer.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

_FIELDS = re.compile(
    r"perfci check=(\S+) head=([0-9a-f]{40,64}) run=(\d{1,18}) attempt=(\d{1,9}) "
    r"started=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) "
    r"state=(begun|ended)(?: digest=([0-9a-f]{16}))?",
    re.ASCII,
)
_LONGEST_CHECK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The check, and the attempt that a report is of.

    ``is_ended`` says that it is its verdict, and not that there will be one. ``digest`` is that of
    a comment's text.
    """

    check: str
    head: str
    run_id: int
    attempt: int
    started_at: str
    is_ended: bool = False
    digest: str = ""

    def is_newer_than(self, other: "Mark") -> bool:
        """Whether this attempt was started later, or is the same one and further.

        GitHub's clock gives both their times.
        """
        return (self.order, self.is_ended) > (other.order, other.is_ended)

    def is_of_the_attempt_of(self, other: "Mark") -> bool:
        """Whether both are of one attempt, whatever they say of it."""
        return self.order == other.order

    @property
    def order(self) -> tuple[str, int, int]:
        """What attempts are sorted by, whatever their commits."""
        return self.started_at, self.run_id, self.attempt


def write_id(mark: Mark) -> str:
    """The mark as one line of text."""
    check = quote(mark.check[:_LONGEST_CHECK], safe="")
    line = (
        f"perfci check={check} head={mark.head} run={mark.run_id} attempt={mark.attempt} "
        f"started={mark.started_at} state={'ended' if mark.is_ended else 'begun'}"
    )
    return f"{line} digest={mark.digest}" if mark.digest else line


def read_id(text: str) -> Mark | None:
    """The mark that a line is, if it is one."""
    found = _FIELDS.fullmatch(text)
    if found is None:
        return None
    check, head, run_id, attempt, started_at, state, digest = found.groups()
    return Mark(
        check=unquote(check),
        head=head,
        run_id=int(run_id),
        attempt=int(attempt),
        started_at=started_at,
        is_ended=state == "ended",
        digest=digest or "",
    )


def marked(mark: Mark, text: str) -> tuple[Mark, str]:
    """The mark with the text's digest, and the text as a comment that begins with it, hidden."""
    complete = replace(mark, digest=hashlib.sha256(text.encode()).hexdigest()[:16])
    return complete, f"<!-- {write_id(complete)} -->\n{text}"


def read_mark(body: str) -> Mark | None:
    """The mark that a comment begins with; None where it is none of perfci's."""
    first_line = body.split("\n", 1)[0].rstrip("\r")
    if not (first_line.startswith("<!-- ") and first_line.endswith(" -->")):
        return None
    return read_id(first_line.removeprefix("<!-- ").removesuffix(" -->"))
