"""From a URL to a page: read the state, ask the store, show. Errors become plain notices."""

from collections.abc import Callable

from dash.development.base_component import Component

from perfci.dashboard import components, queries, urls
from perfci.dashboard.site import Site, current_site
from perfci.dashboard.states import KernelState, OverviewState, RunsState, RunState, Scale
from perfci.dashboard.urls import Url
from perfci.dashboard.views import kernel as kernel_view
from perfci.dashboard.views import noise as noise_view
from perfci.dashboard.views import overview as overview_view
from perfci.dashboard.views import run as run_view
from perfci.dashboard.views import runs as runs_view
from perfci.history.errors import HistoryError


def answer(build: Callable[[Url, Site], Component], url: Url) -> Component:
    """Build a page; what isn't there, an empty store and a broken one are notices."""
    try:
        return build(url, current_site())
    except queries.EmptyStoreError:
        return components.empty_store_notice()
    except queries.UnstudiedError as error:
        return components.unstudied_notice(str(error))
    except queries.NotFoundError as error:
        return components.not_found_notice(str(error))
    except HistoryError as error:
        return components.notice("The store cannot be read", str(error))


def answer_overview(url: Url, site: Site) -> Component:
    """Answer ``/?testbed=…&timer=…``."""
    state = OverviewState(
        testbed=urls.read_text(url, "testbed"), timer=urls.read_text(url, "timer")
    )
    snapshots, testbeds = queries.read_overview(site.store_url, state)
    return overview_view.show(snapshots, testbeds, state, repository_url=site.repository_url)


def answer_kernel(url: Url, site: Site) -> Component:
    """Answer ``/kernel/<kernel>?testbed=…&case=…&timer=…&branch=…&scale=…&commits=all``.

    ``&variant=…``, as often as wanted, names the variants to draw.
    """
    scale: Scale = "log" if urls.read_text(url, "scale") == "log" else "linear"
    asked = KernelState(
        kernel=urls.read_name(url, "kernel"),
        testbed=urls.read_text(url, "testbed"),
        case=urls.read_text(url, "case"),
        timer=urls.read_text(url, "timer"),
        branch=urls.read_text(url, "branch"),
        scale=scale,
        commits=urls.read_text(url, "commits"),
        variants=urls.read_texts(url, "variant"),
    )
    page = queries.read_kernel(site.store_url, asked)
    return kernel_view.show(page, repository_url=site.repository_url)


def answer_run(url: Url, site: Site) -> Component:
    """Answer ``/run/<run_id>?text=…&status=…&sort=…&order=…&row=…``."""
    run, origin = queries.read_run(site.store_url, urls.read_name(url, "run_id"))
    sort = urls.read_text(url, "sort")
    state = RunState(
        run_id=run.run_id,
        text=urls.read_text(url, "text"),
        status=urls.read_text(url, "status"),
        sort=sort if sort in run_view.SORTS else "row",
        descending=urls.read_text(url, "order") == "descending",
        row=urls.read_number(url, "row"),
    )
    return run_view.show(run, origin, state, repository_url=site.repository_url)


def answer_noise(url: Url, site: Site) -> Component:
    """Answer ``/noise?testbed=…``."""
    testbed = urls.read_text(url, "testbed")
    page = queries.read_noise(site.store_url, testbed, threshold=noise_view.THRESHOLD)
    return noise_view.show(page)


def answer_runs(url: Url, site: Site) -> Component:
    """Answer ``/runs?testbed=…&sha=…&page=…``."""
    state = RunsState(
        testbed=urls.read_text(url, "testbed"),
        sha=urls.read_text(url, "sha").strip(),
        page=urls.read_number(url, "page") or 1,
    )
    runs, testbeds = queries.read_runs(site.store_url, testbed=state.testbed, sha=state.sha)
    return runs_view.show(runs, testbeds, state, repository_url=site.repository_url)
