import gzip
import re
import socket
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from perfci.dashboard.app import create_app


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    app = create_app(f"sqlite:///{tmp_path / 'history.db'}", hosts=("bench.example",))
    return app.server.test_client()


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8050",
        "LOCALHOST",
        "127.0.0.1:8050",
        "[::1]:8050",
        "10.1.2.3",
        "bench.example:80",
        socket.gethostname(),
    ],
)
def test_its_own_names_and_plain_addresses_are_answered(client, host) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[evil]", " "]
)
@pytest.mark.parametrize("path", ["/", "/_dash-layout", "/assets/style.css"])
def test_other_names_are_refused(client, host, path) -> None:
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 421
    assert host not in answer.text or host == " "


@pytest.mark.parametrize("path", ["/", "/_dash-layout", "/assets/style.css", "/kernel/x"])
def test_every_answer_carries_the_security_headers(client, path) -> None:
    headers = client.get(path, buffered=True).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"


def test_the_policy_allows_no_script_from_elsewhere_and_none_inline_but_dashs(client) -> None:
    policy = client.get("/").headers["Content-Security-Policy"]
    (scripts,) = re.findall(r"script-src ([^;]*)", policy)
    assert all(each == "'self'" or each.startswith("'sha256-") for each in scripts.split())
    assert "unsafe-eval" not in policy
    assert "default-src 'none'" in policy


def test_figures_are_not_kept_by_caches(client) -> None:
    assert client.get("/_dash-layout").headers["Cache-Control"] == "no-store"


def test_the_page_is_in_english_and_loads_nothing_from_elsewhere(client) -> None:
    page = client.get("/").text
    assert '<html lang="en">' in page
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert addresses
    assert all(each.startswith("/") and not each.startswith("//") for each in addresses)


def test_an_address_with_markup_is_not_echoed(client) -> None:
    page = client.get('/kernel/"><script>alert(1)</script>?x="><script>alert(1)</script>').text
    assert "alert(1)" not in page


def test_texts_are_compressed_for_those_who_accept_it(client) -> None:
    plain = client.get("/assets/style.css", buffered=True)
    packed = client.get("/assets/style.css", headers={"Accept-Encoding": "gzip"}, buffered=True)
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) < len(plain.data) / 2
    assert "Accept-Encoding" in plain.headers["Vary"]


def test_a_refused_encoding_is_not_used(client) -> None:
    answer = client.get("/assets/style.css", headers={"Accept-Encoding": "gzip;q=0"}, buffered=True)
    assert "Content-Encoding" not in answer.headers


def test_the_first_load_is_light_and_scripts_are_kept(client) -> None:
    page = client.get("/").text
    paths = re.findall(r'(?:src|href)="(/(?:_dash|assets)[^"]*\.(?:js|css)[^"]*)"', page)
    answers = [
        client.get(path, headers={"Accept-Encoding": "gzip"}, buffered=True) for path in paths
    ]
    assert all(answer.status_code == 200 for answer in answers)
    assert sum(len(answer.data) for answer in answers) < 400_000
    assert not any("plotly" in path for path in paths)
    suites = [
        answer
        for path, answer in zip(paths, answers, strict=True)
        if path.startswith("/_dash-component-suites")
    ]
    assert suites
    assert all("max-age=31536000" in answer.headers["Cache-Control"] for answer in suites)


def test_a_script_that_the_browser_has_is_not_sent_again(client) -> None:
    path = "/_dash-component-suites/dash/dcc/async-graph.js"
    first = client.get(path, headers={"Accept-Encoding": "gzip"}, buffered=True)
    again = client.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304
