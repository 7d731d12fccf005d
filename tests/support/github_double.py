"""A GitHub of the tests' own: an HTTP server on this machine that speaks the calls that are used.

It is strict: a call that it does not know, a field that GitHub does not have and a text longer than
GitHub takes are refused, and what was not known fails the test. It holds state, can be told to fail
in the ways in which GitHub does, and keeps every call that was made.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

REPOSITORY = "example/kernels"
FORK = "fork/kernels"
TOKEN = "token-of-the-workflow"
BOT = 1001
STRANGER = 2002
MEMBER = 3003
LONGEST_COMMENT_BYTES = 65_536
LONGEST_SUMMARY_BYTES = 65_535
MOST_ANNOTATIONS = 50
CONCLUSIONS = {
    "action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out",
}  # fmt: skip
NO_RIGHTS = "Resource not accessible by integration"
SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)


class _RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Fault:
    """One answer that goes wrong: before the call is carried out, or after it.

    ``cut`` ends the connection before the answer (0), or after a part of it. ``page`` is answered
    instead.
    """

    method: str
    path: str
    number: int | None = None
    status: int = 200
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cut: float | None = None
    page: str | None = None

    def is_for(self, method: str, path: str, number: int) -> bool:
        if self.number not in (None, number):
            return False
        return self.method in ("*", method) and re.search(self.path, path) is not None


@dataclass
class Pull:
    """A pull request; ``labelled`` are labels, each with the time when it was put on, and who did.

    Nobody is an account that is gone. ``unlabelled`` are those that were taken off, likewise.
    """

    number: int
    head: str
    branch: str
    repository: str | None = REPOSITORY
    labels: list[str] = field(default_factory=list)
    labelled: list[tuple[str, str, int | None]] = field(default_factory=list)
    unlabelled: list[tuple[str, str, int | None]] = field(default_factory=list)
    files: list[dict[str, str]] = field(default_factory=list)
    state: str = "open"


class GitHubDouble:
    """The state, the rules and the calls; ``url`` is where it answers."""

    def __init__(self) -> None:
        self.rights = {"issues", "checks", "pulls"}
        self.page_size = 100
        self.pulls: dict[int, Pull] = {}
        self.comments: list[dict[str, Any]] = []
        self.check_runs: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self.faults: list[Fault] = []
        self.befores: dict[int, Callable[[], object]] = {}
        self.meetings: list[tuple[str, str, threading.Barrier]] = []
        self.url = ""
        self._numbers = count(1)
        self._lock = threading.Lock()

    def add_comment(self, pull: int, body: str, author: int = BOT) -> int:
        """A comment that is there already."""
        number = next(self._numbers)
        self.comments.append({"id": number, "pull": pull, "author": author, "body": body})
        return number

    def fail(self, method: str, path: str, *, times: int = 1, **how: Any) -> None:
        """Let the next calls of that kind go wrong."""
        self.faults += [Fault(method, path, **how) for _ in range(times)]

    def fail_call(self, number: int, **how: Any) -> None:
        """Let the call of that number, the first being 0, go wrong."""
        self.faults.append(Fault("*", "", number=number, **how))

    def before(self, number: int, action: Callable[[], object]) -> None:
        """Let something happen before the call of that number is carried out."""
        self.befores[number] = action

    def meet(self, method: str, path: str, parties: int = 2) -> None:
        """Let the first calls of that kind wait for one another, once they are carried out."""
        self.meetings.append((method, path, threading.Barrier(parties)))

    def count(self, method: str, path: str = "") -> int:
        """How many calls of that kind there were."""
        return sum(m == method and re.search(path, p) is not None for m, p in self.calls)

    def answer(self, method: str, url: str, token: str, body: Any) -> tuple[int, Any, str]:
        """Carry out a call: status, answer, and the link to a next page."""
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        if token != f"token {TOKEN}":
            return 401, {"message": "Bad credentials"}, ""
        try:
            for verb, pattern, action in _ROUTES:
                if verb == method and (found := re.fullmatch(pattern, path)):
                    with self._lock:
                        status, answer = action(self, *found.groups(), query, body)
                    return self._page(status, answer, url, query)
        except _RefusedError as error:
            return error.status, {"message": str(error)}, ""
        self.unknown.append(f"{method} {url}")
        return 501, {"message": f"the double does not know {method} {path}"}, ""

    def _page(self, status: int, answer: Any, url: str, query: Any) -> tuple[int, Any, str]:
        """The page of a list that was asked for."""
        if isinstance(answer, list):
            page, size = self._find_page(query)
            part = answer[(page - 1) * size : page * size]
            return status, part, self._link(url, page) if page * size < len(answer) else ""
        if isinstance(answer, dict) and isinstance(answer.get("check_runs"), list):
            page, size = self._find_page(query)
            rows = answer["check_runs"]
            part = rows[(page - 1) * size : page * size]
            link = self._link(url, page) if page * size < len(rows) else ""
            return status, {**answer, "check_runs": part}, link
        return status, answer, ""

    def _find_page(self, query: Any) -> tuple[int, int]:
        asked = int(query.get("per_page", ["30"])[0])
        if asked > 100:
            self.unknown.append(f"per_page={asked}")
        return int(query.get("page", ["1"])[0]), min(asked, self.page_size)

    def _link(self, url: str, page: int) -> str:
        query = {**parse_qs(urlsplit(url).query), "page": [page + 1]}
        return f'<{self.url}{urlsplit(url).path}?{urlencode(query, doseq=True)}>; rel="next"'

    def _need(self, right: str) -> None:
        if right not in self.rights:
            raise _RefusedError(403, NO_RIGHTS)

    def _find_pull(self, number: str) -> Pull:
        if int(number) not in self.pulls:
            raise _RefusedError(404, "Not Found")
        return self.pulls[int(number)]

    # What is answered, a call each.

    def _graphql(self, _query: Any, body: Any) -> tuple[int, Any]:
        if body != {"query": "query { viewer { databaseId } }", "variables": {}}:
            raise _RefusedError(400, f"the double does not know the query {body}")
        return 200, {"data": {"viewer": {"databaseId": BOT}}}

    def _list_pulls(self, query: Any, _body: Any) -> tuple[int, Any]:
        self._known(query, "state", "head", "per_page", "page")
        owner, branch = query["head"][0].split(":", 1)
        return 200, [
            self._show_pull(each)
            for each in self.pulls.values()
            if each.state == query["state"][0]
            and each.branch == branch
            and (each.repository or FORK).split("/")[0] == owner
        ]

    def _get_pull(self, number: str, _query: Any, _body: Any) -> tuple[int, Any]:
        return 200, self._show_pull(self._find_pull(number))

    def _show_pull(self, pull: Pull) -> dict[str, Any]:
        repository = pull.repository and {"full_name": pull.repository, "url": f"{self.url}/x"}
        return {
            "url": f"{self.url}/repos/{REPOSITORY}/pulls/{pull.number}",
            "number": pull.number,
            "state": pull.state,
            "labels": [{"name": each} for each in pull.labels],
            "head": {"sha": pull.head, "ref": pull.branch, "repo": repository},
        }

    def _list_files(self, number: str, query: Any, _body: Any) -> tuple[int, Any]:
        self._known(query, "per_page", "page")
        return 200, [{"sha": "0" * 40, **each} for each in self._find_pull(number).files]

    def _list_events(self, number: str, query: Any, _body: Any) -> tuple[int, Any]:
        self._known(query, "per_page", "page")
        pull = self._find_pull(number)
        kinds = {"labeled": pull.labelled, "unlabeled": pull.unlabelled}
        pushed = {"id": 0, "event": "head_ref_force_pushed", "created_at": "2026-01-31T11:59:00Z"}
        return 200, [
            pushed,
            *(
                {
                    "id": 1,
                    "event": kind,
                    "label": {"name": label},
                    "created_at": moment,
                    "actor": actor and {"id": actor, "login": f"user-{actor}"},
                }
                for kind, found in kinds.items()
                for label, moment, actor in found
            ),
        ]

    def _list_comments(self, number: str, query: Any, _body: Any) -> tuple[int, Any]:
        self._known(query, "per_page", "page")
        self._find_pull(number)
        return 200, [
            self._show_comment(each) for each in self.comments if each["pull"] == int(number)
        ]

    def _show_comment(self, comment: dict[str, Any]) -> dict[str, Any]:
        return {
            "url": f"{self.url}/repos/{REPOSITORY}/issues/comments/{comment['id']}",
            "id": comment["id"],
            "body": comment["body"],
            "user": {"id": comment["author"], "login": f"user-{comment['author']}"},
        }

    def _create_comment(self, number: str, _query: Any, body: Any) -> tuple[int, Any]:
        self._need("issues")
        self._find_pull(number)
        return 201, self._show_comment(
            self.comments[self._new_comment(int(number), self._body_of(body))]
        )

    def _new_comment(self, pull: int, text: str) -> int:
        self.add_comment(pull, text)
        return len(self.comments) - 1

    def _update_comment(self, number: str, _query: Any, body: Any) -> tuple[int, Any]:
        self._need("issues")
        comment = self._find(self.comments, number)
        comment["body"] = self._body_of(body)
        return 200, self._show_comment(comment)

    def _delete_comment(self, number: str, _query: Any, _body: Any) -> tuple[int, Any]:
        self._need("issues")
        self.comments.remove(self._find(self.comments, number))
        return 204, None

    def _body_of(self, body: Any) -> str:
        self._known(body, "body")
        if len(body["body"].encode()) > LONGEST_COMMENT_BYTES:
            raise _RefusedError(422, "Validation Failed")
        return str(body["body"])

    def _list_check_runs(self, sha: str, query: Any, _body: Any) -> tuple[int, Any]:
        self._known(query, "check_name", "filter", "per_page", "page")
        self._need("checks")
        rows = [
            self._show_check_run(each)
            for each in self.check_runs
            if each["head_sha"] == sha and each["name"] == query["check_name"][0]
        ]
        if query.get("filter", ["latest"]) != ["all"]:
            rows = rows[-1:]  # of each name
        return 200, {"total_count": len(rows), "check_runs": rows}

    def _show_check_run(self, check: dict[str, Any]) -> dict[str, Any]:
        output = {**check["output"], "annotations_count": len(check["annotations"])}
        output.pop("annotations", None)
        url = f"{self.url}/repos/{REPOSITORY}/check-runs/{check['id']}"
        shown = {key: value for key, value in check.items() if key != "annotations"}
        return {"conclusion": None, "url": url, **shown, "output": output}

    def _create_check_run(self, _query: Any, body: Any) -> tuple[int, Any]:
        self._need("checks")
        self._known(body, "name", "head_sha", "external_id", "details_url", "status", "output")
        check = {"id": next(self._numbers), "annotations": []}
        self._change_check_run(check, body)
        self.check_runs.append(check)
        return 201, self._show_check_run(check)

    def _update_check_run(self, number: str, _query: Any, body: Any) -> tuple[int, Any]:
        self._need("checks")
        self._known(body, "status", "conclusion", "completed_at", "output")
        check = self._find(self.check_runs, number)
        self._change_check_run(check, body)
        return 200, self._show_check_run(check)

    def _change_check_run(self, check: dict[str, Any], body: Any) -> None:
        output = body.get("output", {})
        self._known(output, "title", "summary", "annotations")
        if not {"title", "summary"} <= output.keys():
            raise _RefusedError(422, "an output has a title and a summary")
        if len(output["summary"].encode()) > LONGEST_SUMMARY_BYTES:
            raise _RefusedError(422, "the summary is too long")
        added = output.get("annotations", [])
        if len(added) > MOST_ANNOTATIONS:
            raise _RefusedError(422, "more than 50 annotations")
        for each in added:
            self._check_annotation(each)
        if body.get("status") == "completed" and body.get("conclusion") not in CONCLUSIONS:
            raise _RefusedError(422, "a conclusion that is none")
        check["annotations"] += added
        check.update(body)

    def _check_annotation(self, annotation: Any) -> None:
        needed = {"path", "start_line", "end_line", "annotation_level", "message"}
        self._known(annotation, *needed, "title")
        if not needed <= annotation.keys():
            raise _RefusedError(422, "an annotation lacks a field")
        if annotation["annotation_level"] not in ("notice", "warning", "failure"):
            raise _RefusedError(422, "a level that is none")
        if not 1 <= annotation["start_line"] <= annotation["end_line"]:
            raise _RefusedError(422, "lines that are none")
        too_long = len(annotation["message"].encode()) > 65_536
        if too_long or len(annotation.get("title", "")) > 255:
            raise _RefusedError(422, "an annotation is too long")

    def _find(self, rows: list[dict[str, Any]], number: str) -> dict[str, Any]:
        found = [each for each in rows if each["id"] == int(number)]
        if not found:
            raise _RefusedError(404, "Not Found")
        return found[0]

    def _known(self, given: Any, *names: str) -> None:
        for each in set(given) - set(names):
            self.unknown.append(f"field {each}")
            raise _RefusedError(422, f"the double does not know the field {each}")


_HERE = f"/repos/{REPOSITORY}"
_ROUTES: tuple[tuple[str, str, Callable[..., tuple[int, Any]]], ...] = (
    ("POST", "/graphql", GitHubDouble._graphql),
    ("GET", f"{_HERE}/pulls", GitHubDouble._list_pulls),
    ("GET", rf"{_HERE}/pulls/(\d+)", GitHubDouble._get_pull),
    ("GET", rf"{_HERE}/pulls/(\d+)/files", GitHubDouble._list_files),
    ("GET", rf"{_HERE}/issues/(\d+)/events", GitHubDouble._list_events),
    ("GET", rf"{_HERE}/issues/(\d+)/comments", GitHubDouble._list_comments),
    ("POST", rf"{_HERE}/issues/(\d+)/comments", GitHubDouble._create_comment),
    ("PATCH", rf"{_HERE}/issues/comments/(\d+)", GitHubDouble._update_comment),
    ("DELETE", rf"{_HERE}/issues/comments/(\d+)", GitHubDouble._delete_comment),
    ("GET", rf"{_HERE}/commits/([0-9a-f]+)/check-runs", GitHubDouble._list_check_runs),
    ("POST", f"{_HERE}/check-runs", GitHubDouble._create_check_run),
    ("PATCH", rf"{_HERE}/check-runs/(\d+)", GitHubDouble._update_check_run),
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        double: GitHubDouble = self.server.double  # type: ignore[attr-defined]
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        body = json.loads(text) if text else None
        double.calls.append((self.command, self.path))
        double.befores.pop(len(double.calls) - 1, lambda: None)()
        fault = self._take_fault(double)
        if fault is not None and (fault.status != 200 or fault.page is not None):
            answer = fault.page if fault.page is not None else {"message": fault.message}
            self._send(fault.status, answer, fault.headers, fault.cut)
            return
        token = self.headers.get("Authorization", "")
        status, answer, link = double.answer(self.command, self.path, token, body)
        self._wait(double)
        headers = {"Link": link} if link else {}
        self._send(status, answer, headers, None if fault is None else fault.cut)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve  # noqa: N815

    def _take_fault(self, double: GitHubDouble) -> Fault | None:
        for each in double.faults:
            if each.is_for(self.command, self.path, len(double.calls) - 1):
                double.faults.remove(each)
                return each
        return None

    def _wait(self, double: GitHubDouble) -> None:
        for method, pattern, barrier in double.meetings:
            if method == self.command and re.search(pattern, self.path):
                try:
                    barrier.wait(timeout=20)
                except threading.BrokenBarrierError:
                    double.unknown.append(f"nobody came to meet {method} {pattern}")
                finally:
                    double.meetings[:] = [m for m in double.meetings if m[2] is not barrier]

    def _send(self, status: int, answer: Any, headers: dict[str, str], cut: float | None) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        blob = b"" if answer is None else text.encode()
        self.close_connection = True
        if cut == 0:
            return
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(blob)))
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(blob if cut is None else blob[: int(cut * len(blob))])

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[GitHubDouble]:
    """A GitHub that answers while the context is open, and says at its end what it did not know."""
    double = GitHubDouble()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.double = double  # type: ignore[attr-defined]
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert not double.unknown, double.unknown
    assert not double.befores, f"calls that were never made: {[*double.befores]}"
    assert not double.faults, f"faults that nobody met: {double.faults}"
