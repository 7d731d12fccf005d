"""Every other address."""

import dash
from dash.development.base_component import Component

from perfci.dashboard.components import not_found_notice

dash.register_page(__name__, path="/404", title="Not found · perfci")


def layout(**_: object) -> Component:
    """Say that there is no such page."""
    return not_found_notice("no page has this address")
