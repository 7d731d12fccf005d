"""What the running dashboard was told at its start."""

from dataclasses import dataclass

from flask import Flask, current_app

_KEY = "PERFCI_SITE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Which store is shown, and where its commits can be read on the web (None: nowhere)."""

    store_url: str
    repository_url: str | None


def set_site(server: Flask, site: Site) -> None:
    """Tell a server which site it shows."""
    server.config[_KEY] = site


def current_site() -> Site:
    """Return the site of the request that is being answered."""
    site = current_app.config[_KEY]
    assert isinstance(site, Site)
    return site
