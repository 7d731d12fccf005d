"""``/runs``: the list of runs."""

import dash
from dash.development.base_component import Component

from perfci.dashboard.answers import answer, answer_runs

dash.register_page(__name__, path="/runs", title="Runs · perfci")


def layout(**url: object) -> Component:
    """Show the runs."""
    return answer(answer_runs, url)
