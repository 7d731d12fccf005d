"""What every answer of the dashboard carries, and whom it answers at all."""

import ipaddress
import socket
from collections.abc import Callable, Collection, Sequence

from flask import Flask, Response, request

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def add_guard(
    server: Flask, *, hosts: Collection[str], script_hashes: Callable[[], Sequence[str]]
) -> None:
    """Refuse strange Host headers and send the security headers with every answer.

    ``hosts`` are the names beside ``localhost`` and this machine's own under which the dashboard
    is reached; ``script_hashes`` returns the hashes of the inline scripts of a page.
    """
    names = {"localhost", socket.gethostname().lower(), *(host.lower() for host in hosts)}

    @server.before_request
    def refuse_strange_hosts() -> Response | None:
        # A page elsewhere can let its own name point here (DNS rebinding) and would then read
        # everything; it cannot do so with an address or with one of our names.
        if _is_ours(_host_name(request.headers.get("Host", "")), names):
            return None
        return Response("unknown Host header\n", status=421, mimetype="text/plain")

    @server.after_request
    def add_headers(response: Response) -> Response:
        response.headers.update(_HEADERS)
        if response.mimetype == "text/html":
            response.headers["Content-Security-Policy"] = _policy(script_hashes())
        if response.mimetype == "application/json":
            response.headers["Cache-Control"] = "no-store"
        return response


def _host_name(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def _is_ours(name: str, names: Collection[str]) -> bool:
    if name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _policy(script_hashes: Sequence[str]) -> str:
    # Dash and plotly write style attributes and style elements; scripts come from here alone.
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {' '.join(script_hashes)}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )
