"""Put the dashboard together and serve it."""

import logging
import socket
from collections.abc import Callable, Collection
from pathlib import Path

import dash
import waitress
from dash import ClientsideFunction, Dash, Input, Output, dcc, html

from perfci.dashboard import ids
from perfci.dashboard.components import aria
from perfci.dashboard.compression import add_compression
from perfci.dashboard.guard import add_guard
from perfci.dashboard.site import Site, set_site
from perfci.dashboard.statuses import add_statuses
from perfci.dashboard.urls import noise_url, overview_url, runs_url, web_url

_FOLDER = Path(__file__).resolve().parent
_THREADS = 8
_LARGEST_REQUEST_BYTES = 1 << 20

_INDEX = """<!DOCTYPE html>
<html lang="en">
    <head>
        {%metas%}
        <title>{%title%}</title>
        {%favicon%}
        {%css%}
    </head>
    <body>
        {%app_entry%}
        <noscript>This dashboard needs JavaScript.</noscript>
        <footer>
            {%config%}
            {%scripts%}
            {%renderer%}
        </footer>
    </body>
</html>
"""


def create_app(
    store_url: str, *, repository_url: str | None = None, hosts: Collection[str] = ()
) -> Dash:
    """Return the dashboard of a store.

    ``repository_url`` is the repository's page on the web, to which commits are linked; anything
    but http or https is left out. ``hosts`` are the names beside ``localhost``, this machine's own
    and plain addresses under which it may be asked.
    """
    # Dash names pages by the current folder and keeps them for the process: an app that was made in
    # another folder would have left the same pages under other names. Dash(__name__) would find
    # the package and register every page twice by itself.
    dash.page_registry.clear()
    app = Dash(
        "dashboard",
        use_pages=True,
        pages_folder=str(_FOLDER / "pages"),
        assets_folder=str(_FOLDER / "assets"),
        title="perfci",
        update_title="",
        index_string=_INDEX,
        include_pages_meta=False,
        serve_locally=True,
        suppress_callback_exceptions=True,
        meta_tags=[
            {"name": "viewport", "content": "width=device-width, initial-scale=1"},
            {"name": "color-scheme", "content": "light dark"},
        ],
    )
    app.layout = _frame()
    app.clientside_callback(
        ClientsideFunction("perfci", "open_point"),
        Output(ids.LOCATION, "href"),
        Input(ids.HISTORY_FIGURE, "clickData"),
        prevent_initial_call=True,
    )
    set_site(app.server, Site(store_url=store_url, repository_url=web_url(repository_url)))
    # after_request functions run last to first: the status is set before the answer is packed.
    add_compression(app.server)
    add_guard(app.server, hosts=hosts, script_hashes=app.csp_hashes)
    add_statuses(app.server, pages=_page_addresses(), callbacks=app.callback_map)
    return app


def serve(
    store_url: str,
    host: str,
    port: int,
    *,
    repository_url: str | None = None,
    on_listening: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve the dashboard of a store until interrupted.

    ``on_listening`` hears the port once there is one; 0 asks for any that is free. Raises OSError
    where the address cannot be bound.
    """
    app = create_app(store_url, repository_url=repository_url, hosts=(host,))
    # It warns of each request that meets no idle thread for a moment, at the start every one.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        on_listening(listening.getsockname()[1])
        waitress.serve(
            app.server,
            sockets=[listening],
            threads=_THREADS,
            max_request_body_size=_LARGEST_REQUEST_BYTES,
            ident=None,
        )


def _page_addresses() -> list[str]:
    """Where there are pages; the one for everything else has no address of its own."""
    pages = dash.page_registry.values()
    addresses = [page["path_template"] or page["path"] for page in pages]
    return [address for address in addresses if address != "/404"]


def _frame() -> html.Div:
    return html.Div(
        [
            # A link to a run is followed without loading the scripts again.
            dcc.Location(id=ids.LOCATION, refresh="callback-nav"),
            html.Header(
                [
                    dcc.Link("perfci", href=overview_url(), className="brand"),
                    aria(
                        html.Nav(
                            [
                                dcc.Link("Newest figures", href=overview_url()),
                                dcc.Link("Runs", href=runs_url()),
                                dcc.Link("Noise", href=noise_url()),
                            ]
                        ),
                        label="Pages",
                    ),
                ],
                className="top",
            ),
            dash.page_container,
        ]
    )
