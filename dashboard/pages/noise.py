"""``/noise``: how far a testbed lies from itself."""

import dash
from dash.development.base_component import Component

from perfci.dashboard.answers import answer, answer_noise

dash.register_page(__name__, path="/noise", title="Noise · perfci")


def layout(**url: object) -> Component:
    """Show the newest study."""
    return answer(answer_noise, url)
