"""JSON from outside, read strictly: no key twice, no NaN, nothing that breaks the reader."""

import json
from typing import Any, NoReturn

from perfci.history.text import one_line


class JsonError(ValueError):
    """A text is no JSON; ``is_damaged`` where it may have been some that was cut or changed."""

    def __init__(self, reason: str, *, is_damaged: bool = False) -> None:
        super().__init__(reason)
        self.is_damaged = is_damaged


def read_json(text: bytes) -> Any:
    """The value that UTF-8 JSON stands for. Raises JsonError, on one line."""
    try:
        return json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        cut = "truncated" if error.pos >= len(error.doc.rstrip()) else "not JSON"
        raise JsonError(f"{cut} ({error.msg} at {place})", is_damaged=True) from None
    except UnicodeDecodeError:
        raise JsonError("no JSON text") from None
    except RecursionError:
        raise JsonError("JSON nested too deep") from None
    except JsonError:
        raise
    except ValueError:
        raise JsonError("a number of thousands of digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise JsonError(f"key {one_line(repr(key), limit=60)} twice in one object")
        found[key] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is no JSON number")
