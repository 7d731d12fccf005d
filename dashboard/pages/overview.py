"""``/``: the newest figures of each testbed."""

import dash
from dash.development.base_component import Component

from perfci.dashboard.answers import answer, answer_overview

dash.register_page(__name__, path="/", title="Newest figures · perfci")


def layout(**url: object) -> Component:
    """Show the overview."""
    return answer(answer_overview, url)
