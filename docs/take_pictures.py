"""Take the pictures of the documentation: the dashboard over a store, in headless Chromium.

    perfci history import examples/h200 examples/cpu --store real.db
    perfci history import examples/planted-h200 --store planted.db
    python docs/take_pictures.py real.db docs/pictures overview
    python docs/take_pictures.py planted.db docs/pictures kernel

Needs Chromium and the package playwright.
"""

import argparse
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

from playwright.sync_api import sync_playwright

from perfci.dashboard.app import create_app

PAGES = {
    "overview": "/",
    "kernel": "/kernel/mla_kv_projection?branch=main",
    "noise": "/noise",
}
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_SETTLE_MS = 2500


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def main() -> None:
    """Serve the store on a free port and take every page at every size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", nargs="+", choices=PAGES)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    app = create_app(f"sqlite:///{options.store.resolve()}")
    with make_server("127.0.0.1", 0, app.server, handler_class=_Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        take(f"http://127.0.0.1:{server.server_port}", options.folder, options.pages)
        server.shutdown()


def take(address: str, folder: Path, names: Sequence[str]) -> None:
    """Take the pictures of a dashboard that is served."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=_ARGUMENTS
        )
        for size, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            for name in names:
                page.goto(address + PAGES[name])
                page.wait_for_timeout(_SETTLE_MS)
                page.screenshot(path=folder / f"{name}-{size}.png")
        browser.close()


if __name__ == "__main__":
    main()
