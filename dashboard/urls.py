"""The addresses of pages: what a page's state looks like as a URL, and back.

Whatever a visitor types arrives here as text or lists of text and leaves as one short text.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote, urlencode, urlsplit

LONGEST_TEXT = 300
_MOST_TEXTS = 100

Url = Mapping[str, object]


def read_text(url: Url, name: str) -> str:
    """Read one parameter: its last text, cut to a sane length; empty where there is none."""
    given = url.get(name)
    if isinstance(given, list):
        given = given[-1] if given else None
    return _clean(given) if isinstance(given, str) else ""


def read_texts(url: Url, name: str) -> tuple[str, ...]:
    """Read one parameter that may be given several times, each text cut to a sane length."""
    given = url.get(name)
    texts = given if isinstance(given, list) else [given]
    return tuple(_clean(each) for each in texts[:_MOST_TEXTS] if isinstance(each, str))


def read_name(url: Url, name: str) -> str:
    """Read one part of the path, without its percent signs."""
    return unquote(read_text(url, name))


def read_number(url: Url, name: str) -> int | None:
    """Read one parameter as a positive number; None for anything else."""
    text = read_text(url, name)
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 10 else None


def overview_url(testbed: str = "", timer: str = "") -> str:
    """Where the newest figures are, of one testbed or of all."""
    return _with_state("/", {"testbed": testbed, "timer": timer})


def kernel_url(kernel: str, **state: str | Sequence[str]) -> str:
    """Where a kernel's history is; an empty state is left out."""
    return _with_state(f"/kernel/{quote(kernel, safe='')}", state)


def run_url(run_id: str, **state: str) -> str:
    """Where one run is; an empty state is left out."""
    return _with_state(f"/run/{quote(run_id, safe='')}", state)


def noise_url(testbed: str = "") -> str:
    """Where the noise of a testbed is, or of the one that was studied last."""
    return _with_state("/noise", {"testbed": testbed})


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


def _clean(text: str) -> str:
    """Cut a text to a sane length; half a surrogate pair, which no store takes, becomes ``?``."""
    return text[:LONGEST_TEXT].encode(errors="replace").decode()


def _with_state(path: str, state: Mapping[str, str | Sequence[str]]) -> str:
    given = {name: text for name, text in state.items() if text}
    query = urlencode(given, doseq=True, quote_via=quote)
    return f"{path}?{query}" if query else path
