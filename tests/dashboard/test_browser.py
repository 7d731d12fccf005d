"""The dashboard in Chromium, over real stores: what only a browser can tell."""

import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median

import pytest
import waitress
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright
from waitress.server import BaseWSGIServer

from perfci.dashboard.app import create_app
from perfci.history.model import Run, Status

CHROMIUM = shutil.which("chromium")
WIDE, NARROW = 1440, 390

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the PATH"),
]


@dataclass
class Visitor:
    """A browser's page that remembers what went wrong on it."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._watch)

    def visit(self, path: str, *, width: int = WIDE) -> Page:
        """Go to a page and wait until it is there."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.goto(f"{self.base}{path}")
        self.page.wait_for_selector("main h1")
        if self.page.locator(".dash-graph").count():
            self.page.wait_for_selector(".js-plotly-plot .main-svg")
        return self.page

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _watch(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.complaints.append(f"asked {request.url}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield found
        found.close()


def _run(server: BaseWSGIServer) -> None:
    with suppress(OSError):  # its sockets may be closed while it waits on them: so it ends
        server.run()


@pytest.fixture
def open_dashboard(
    browser: Browser, store_with: Callable[[Sequence[Run]], str]
) -> Iterator[Callable[[Sequence[Run]], Visitor]]:
    closing: list[Callable[[], None]] = []

    def open_over(runs: Sequence[Run]) -> Visitor:
        server = waitress.create_server(create_app(store_with(runs)).server, port=0, threads=4)
        thread = threading.Thread(target=_run, args=(server,))
        thread.start()
        page = browser.new_page()

        def close() -> None:
            page.close()
            server.close()
            thread.join(timeout=30)

        closing.append(close)
        return Visitor(page=page, base=f"http://127.0.0.1:{server.effective_port}")

    yield open_over
    for close in closing:
        close()


@pytest.fixture
def many(make) -> list[Run]:
    failed = make.cell("bad", status=Status.WRONG_VALUES, message="off " * 80, error=None)
    cells = [
        make.cell(variant, case=case)
        for variant in ("plain", "a_variant_with_quite_a_long_name", "third")
        for case in ("large", "small", "a_case_with_quite_a_long_name")
    ]
    runs = [
        make.run(index, [*cells, failed], testbed=testbed, subject=f"Subject {'word ' * 20}")
        for index in range(8)
        for testbed in ("bench", "other")
    ]
    return [*runs, make.run(7, cells, dirty="d" * 8, attempt=3)]


def every_path(runs: Sequence[Run]) -> list[str]:
    paths = ["/", "/runs", "/kernel/scale", "/kernel/scale?testbed=all&scale=log", "/nope"]
    return paths + [f"/run/{run.run_id}{row}" for run in runs[:1] for row in ("", "?row=1")]


def test_nothing_goes_wrong_and_nothing_is_asked_elsewhere(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    for path in every_path(many):
        visitor.visit(path)
    (missing,) = visitor.complaints
    assert "404" in missing


def test_a_variant_is_left_out_and_drawn_again(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    page = visitor.visit("/kernel/scale?testbed=bench")
    page.get_by_role("link", name="third").click()
    expect(page.locator(".left-out")).to_have_text(re.compile("third"))
    expect(page.get_by_text("3 of 4 drawn")).to_be_visible()
    page.get_by_role("link", name="third").click()
    expect(page.locator(".left-out")).to_have_count(0)
    assert visitor.complaints == []


def test_what_changed_is_said_under_the_pointer(open_dashboard, make) -> None:
    driver = replace(make.run(1), environment=make.environment(driver="580"))
    visitor = open_dashboard([make.run(0), driver])
    page = visitor.visit("/kernel/scale")
    page.locator(".annotation-text-g").hover()
    expect(page.locator(".hoverlayer .hovertext")).to_contain_text("driver none → 580")
    assert visitor.complaints == []


def test_trends_are_drawn_within_the_policy(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    page = visitor.visit("/?testbed=bench")
    image = page.locator("img.trend").first
    expect(image).to_be_visible()
    assert image.evaluate("each => each.complete && each.naturalWidth > 0")
    assert visitor.complaints == []


def test_uncommitted_trees_alone_are_a_page_too(open_dashboard, make) -> None:
    visitor = open_dashboard([make.run(0, dirty="d" * 8)])
    page = visitor.visit("/")
    page.get_by_role("link", name="scale", exact=True).click()
    expect(page.get_by_text("Nothing is on main’s line yet.")).to_be_visible()
    expect(page.get_by_text("10.0 µs")).to_be_visible()
    assert visitor.complaints == []


def test_an_empty_store_is_a_friendly_page(open_dashboard) -> None:
    visitor = open_dashboard([])
    expect(visitor.visit("/").get_by_text("Nothing measured yet")).to_be_visible()
    assert visitor.complaints == []


def test_one_run_is_enough(open_dashboard, make) -> None:
    visitor = open_dashboard([make.run(0)])
    expect(visitor.visit("/").get_by_text("no earlier commit")).to_be_visible()
    visitor.visit("/kernel/scale")
    assert visitor.complaints == []


def test_a_kernel_of_which_nothing_passed_is_drawn(open_dashboard, make) -> None:
    failed = make.cell(status=Status.TIMEOUT, message="no answer", error=None)
    visitor = open_dashboard([make.run(0, [failed]), make.run(1, [failed])])
    page = visitor.visit("/kernel/scale")
    expect(page.get_by_text("timeout").first).to_be_visible()
    assert visitor.complaints == []


def test_no_page_scrolls_sideways_on_a_phone(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    for path in every_path(many):
        page = visitor.visit(path, width=NARROW)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= NARROW, path
        for plot in page.locator(".js-plotly-plot").all():
            box = plot.bounding_box()
            assert box is not None
            assert box["width"] <= NARROW


def right_edge(page: Page) -> float:
    """How bright most of the first table's right edge is, 3 px inside it, of 255."""
    picture = page.locator(".table-box").first.screenshot()
    script = """async bytes => {
      const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
      const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
      canvas.drawImage(image, 0, 0);
      const column = canvas.getImageData(image.width - 3, 8, 1, image.height - 16).data;
      return Array.from(column).filter((_, index) => index % 4 === 0);
    }"""
    return median(page.evaluate(script, list(picture)))


def test_a_table_is_shaded_where_more_is_out_of_sight(open_dashboard, many) -> None:
    page = open_dashboard(many).visit(f"/run/{many[0].run_id}", width=NARROW)
    box = page.locator(".table-box").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth + 100")
    assert right_edge(page) < 200
    box.evaluate("box => { box.scrollLeft = box.scrollWidth }")
    assert right_edge(page) > 240
    for name in ("tbody th", "thead th.name"):  # a row's name stays, and so does its heading
        place = page.locator(name).first.bounding_box()
        assert place is not None
        assert 0 <= place["x"] < NARROW / 2


def test_no_table_of_usual_size_is_cut_on_a_wide_screen(open_dashboard, make) -> None:
    names = [f"torch_{word}_of_some" for word in "abcdefghij"]
    runs = [
        make.run(
            index,
            [make.cell(name, status=Status.SKIPPED if name == names[0] else Status.PASSED)
             for name in names],
            testbed="intel-xeon-processor-2-cores",
            subject="Ask whether there is a device, so that nothing starts " * 2,
        )
        for index in range(3)
    ]  # fmt: skip
    visitor = open_dashboard(runs)
    for path in ("/runs", "/kernel/scale"):
        page = visitor.visit(path, width=1400)
        for box in page.locator(".table-box").all():
            assert box.evaluate("box => box.scrollWidth <= box.clientWidth"), path


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_figures_of_noise_stand_below_each_other(open_dashboard, make, width: int) -> None:
    cells = [
        make.cell("a_variant_with_quite_a_long_name"),
        *(make.cell("short", kernel="other", case=case) for case in ("large", "small")),
    ]
    runs = [make.run(1, cells, attempt=side) for side in (1, 2)]
    visitor = open_dashboard([replace(run, trigger="noise", pair="p") for run in runs])
    page = visitor.visit("/noise", width=width)
    plots = page.locator(".js-plotly-plot .nsewdrag")
    expect(plots).to_have_count(2)
    first, second = (plot.bounding_box() for plot in plots.all())
    assert first is not None
    assert second is not None
    assert (first["x"], first["width"]) == (second["x"], second["width"])
    assert first["width"] > 0.4 * width
    for name in page.locator(".js-plotly-plot .ytick text").all():
        box = name.bounding_box()
        assert box is not None
        assert box["x"] > 0
        assert box["x"] + box["width"] < first["x"]
    assert page.locator(".js-plotly-plot .legend").count() == 0
    assert visitor.complaints == []


def test_the_way_from_the_overview_to_a_kernel_and_back(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    page = visitor.visit("/?testbed=bench")
    page.get_by_role("link", name="scale", exact=True).click()
    expect(page.locator("h1")).to_have_text("scale")
    expect(page).to_have_url(re.compile(r"/kernel/scale\?testbed=bench&timer=cpu%2F1$"))
    page.get_by_role("link", name="small", exact=True).click()
    expect(page).to_have_url(re.compile(r"case=small"))
    expect(page.locator(".choice.chosen", has_text="small")).to_be_visible()
    page.go_back()
    expect(page.locator(".choice.chosen", has_text="large")).to_be_visible()
    page.go_back()
    expect(page.locator("h1")).to_have_text("Newest figures")
    expect(page.locator(".choice.chosen", has_text="bench")).to_be_visible()
    assert visitor.complaints == []


def test_a_point_leads_to_its_run_and_back_leads_to_the_figure(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    page = visitor.visit("/kernel/scale?testbed=bench")
    page.locator(".js-plotly-plot .xy .scatter .point").first.wait_for()
    box = page.locator(".js-plotly-plot .xy .scatter .point").last.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page).to_have_url(re.compile(r"/run/bench-"))
    expect(page.locator("h1")).to_contain_text("Run at")
    page.go_back()
    expect(page.locator("h1")).to_have_text("scale")
    assert visitor.complaints == []


def test_rows_are_filtered_by_what_is_typed(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    page = visitor.visit(f"/run/{many[0].run_id}?status=passed")
    page.get_by_label("Rows with").fill("third")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("3 of 10 rows")).to_be_visible()
    expect(page).to_have_url(re.compile(r"text=third.*status=passed"))
    assert visitor.complaints == []


def test_a_commits_subject_is_never_markup(open_dashboard, make) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
    visitor = open_dashboard([make.run(0, subject=evil), make.run(1, subject=evil)])
    page = visitor.visit("/kernel/scale")
    point = page.locator(".js-plotly-plot .xy .scatter .point").first
    point.wait_for()
    box = point.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".hoverlayer .hovertext")).to_contain_text("<img src=x")
    assert page.title() != "owned"
    assert page.locator("main img, main b").count() == 0
    assert visitor.complaints == []


def test_the_page_has_a_language_labels_and_one_heading(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    for path in every_path(many):
        page = visitor.visit(path)
        assert page.locator("html").get_attribute("lang") == "en"
        assert page.locator("h1").count() == 1
        assert page.locator("table:not(:has(th[scope=col]))").count() == 0
        for box in page.locator("input:visible").all():
            name = box.get_attribute("id")
            assert page.locator(f"label[for='{name}']").count() == 1


def test_dark_pages_are_dark(open_dashboard, many) -> None:
    visitor = open_dashboard(many)
    visitor.page.emulate_media(color_scheme="dark")
    page = visitor.visit("/")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = (int(each) for each in re.findall(r"\d+", colour)[:3])
    assert max(red, green, blue) < 60
