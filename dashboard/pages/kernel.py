"""``/kernel/<name>``: a kernel's history along a branch."""

import dash
from dash.development.base_component import Component

from perfci.dashboard.answers import answer, answer_kernel

dash.register_page(
    __name__, path_template="/kernel/<kernel>", title="Kernel · perfci", path="/kernel"
)


def layout(**url: object) -> Component:
    """Show a kernel."""
    return answer(answer_kernel, url)
