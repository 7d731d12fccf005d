"""Which HTTP status an answer has where Dash itself says 200 or falls over.

The first load of an address that no page has is 404, though the browser then draws the friendly
page. A request for a page's content that no browser of ours would send is 400.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dash.exceptions import DependencyException
from flask import Flask, Response, request

_CALLBACKS = "/_dash-update-component"


def add_statuses(
    server: Flask, *, pages: Iterable[str], callbacks: Mapping[str, Mapping[str, Any]]
) -> None:
    """Answer with the proper status.

    ``pages`` are the addresses of the pages, with ``<name>`` for what varies; ``callbacks`` are
    Dash's, by output, and may be filled later.
    """
    templates = [re.compile(re.sub(r"<\w+>", "[^/]+", page.strip("/"))) for page in pages]

    @server.before_request
    def refuse_malformed_requests() -> Response | None:
        if request.path != _CALLBACKS or request.method != "POST":
            return None
        if _fits(_read_body(), callbacks):
            return None
        return Response("not a request of this dashboard\n", status=400, mimetype="text/plain")

    @server.errorhandler(DependencyException)
    def refuse_unknown_scripts(_error: DependencyException) -> Response:
        return Response("no script of this dashboard\n", status=404, mimetype="text/plain")

    @server.after_request
    def say_not_found(response: Response) -> Response:
        is_page = response.mimetype == "text/html" and response.status_code == 200
        path = request.path.strip("/")
        if is_page and not any(template.fullmatch(path) for template in templates):
            response.status_code = 404
        return response


def _read_body() -> object:
    """What the request holds; None where it is no JSON, or nested beyond all measure."""
    try:
        return request.get_json(silent=True)
    except RecursionError:
        return None


def _fits(body: object, callbacks: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a body asks for one of the callbacks with the properties that it takes, as texts."""
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return False
    callback = callbacks.get(body["output"], {})
    if "callback" not in callback:
        return False
    outputs = _names(body.get("outputs"))
    changed = body.get("changedPropIds", [])
    return (
        outputs is not None
        and f"..{'...'.join(outputs)}.." == body["output"]
        and _names(body.get("inputs")) == _names(callback["inputs"])
        and _names(body.get("state", [])) == _names(callback["state"])
        and all(_is_location(each) for each in body["inputs"])
        and isinstance(changed, list)
        and all(isinstance(each, str) for each in changed)
    )


def _is_location(given: Mapping[str, object]) -> bool:
    """Whether a value is what a browser has in its address bar: a path begins with a slash."""
    value = given.get("value")
    return isinstance(value, str) and (given["property"] != "pathname" or value.startswith("/"))


def _names(properties: object) -> list[str] | None:
    """The names of properties, ``id.property`` each; None where it is no list of properties."""
    if not isinstance(properties, list) or not all(isinstance(each, dict) for each in properties):
        return None
    return [f"{each.get('id')}.{each.get('property')}" for each in properties]
