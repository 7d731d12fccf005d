"""``/run/<run_id>``: one run, its rows and their samples."""

import dash
from dash.development.base_component import Component

from perfci.dashboard.answers import answer, answer_run

dash.register_page(__name__, path_template="/run/<run_id>", title="Run · perfci", path="/run")


def layout(**url: object) -> Component:
    """Show a run."""
    return answer(answer_run, url)
