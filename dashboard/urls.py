"""The addresses of pages: what a page's state looks like as a URL, and back.

Whatever a visitor types arrives here as text or lists of text and leaves as one short text.
"""

from collections.abc import Mapping
from urllib.parse import quote, unquote, urlencode, urlsplit

LONGEST_TEXT = 300

Url = Mapping[str, object]


def read_text(url: Url, name: str) -> str:
    """Read one parameter: its last text, cut to a sane length; empty where there is none."""
    given = url.get(name)
    if isinstance(given, list):
        given = given[-1] if given else None
    return given[:LONGEST_TEXT] if isinstance(given, str) else ""


def read_name(url: Url, name: str) -> str:
    """Read one part of the path, without its percent signs."""
    return unquote(read_text(url, name))


def read_number(url: Url, name: str) -> int | None:
    """Read one parameter as a positive number; None for anything else."""
    text = read_text(url, name)
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 10 else None


def overview_url(testbed: str = "") -> str:
    """Where the newest figures are, of one testbed or of all."""
    return _with_state("/", {"testbed": testbed})


def kernel_url(kernel: str, **state: str) -> str:
    """Where a kernel's history is; an empty state is left out."""
    return _with_state(f"/kernel/{quote(kernel, safe='')}", state)


def run_url(run_id: str, **state: str) -> str:
    """Where one run is; an empty state is left out."""
    return _with_state(f"/run/{quote(run_id, safe='')}", state)


def runs_url(**state: str) -> str:
    """Where the list of runs is; an empty state is left out."""
    return _with_state("/runs", state)


def commit_url(repository_url: str | None, sha: str) -> str | None:
    """Where a commit can be read; None where the repository has no page on the web."""
    if repository_url is None:
        return None
    return f"{repository_url.rstrip('/')}/commit/{quote(sha, safe='')}"


def web_url(address: str | None) -> str | None:
    """Return ``address`` if it is a page on the web (http or https, no password), else None."""
    if address is None:
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    is_page = parts.scheme in ("http", "https") and bool(parts.hostname)
    return address if is_page and "@" not in parts.netloc else None


def _with_state(path: str, state: Mapping[str, str]) -> str:
    query = urlencode({name: text for name, text in state.items() if text}, quote_via=quote)
    return f"{path}?{query}" if query else path
