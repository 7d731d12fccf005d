import pytest

from perfci.dashboard import urls


def test_a_parameter_is_its_last_text_and_never_long() -> None:
    url = {"case": ["a", "b"], "none": [], "long": "x" * 100_000, "odd": 3}
    assert urls.read_text(url, "case") == "b"
    assert urls.read_text(url, "none") == ""
    assert urls.read_text(url, "absent") == ""
    assert urls.read_text(url, "odd") == ""
    assert len(urls.read_text(url, "long")) == urls.LONGEST_TEXT


def test_a_parameter_may_be_given_several_times_but_not_without_end() -> None:
    assert urls.read_texts({"variant": ["a", 3, "b"]}, "variant") == ("a", "b")
    assert urls.read_texts({"variant": "a"}, "variant") == ("a",)
    assert urls.read_texts({}, "variant") == ()
    assert len(urls.read_texts({"variant": ["x" * 1_000] * 1_000}, "variant")) == 100
    assert urls.kernel_url("k", variant=("a b", "c")) == "/kernel/k?variant=a%20b&variant=c"


def test_half_a_surrogate_pair_is_no_text_for_a_store() -> None:
    assert urls.read_text({"case": "a\ud800"}, "case") == "a?"


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("0", 0), ("-1", None), ("1e3", None), ("٣", None), ("9" * 40, None), ("", None)],
)
def test_a_number_is_plain_digits_or_nothing(text: str, number: int | None) -> None:
    assert urls.read_number({"row": text}, "row") == number


def test_names_survive_the_way_through_a_url() -> None:
    for name in ("plain", "a/b", "ü ?&#=", "<b>", "100%"):
        path = urls.kernel_url(name)
        assert path.count("/") == 2
        assert urls.read_name({"kernel": path.removeprefix("/kernel/")}, "kernel") == name


def test_an_empty_state_is_left_out_of_the_address() -> None:
    assert urls.kernel_url("k", case="", timer="cpu/1") == "/kernel/k?timer=cpu%2F1"
    assert urls.overview_url() == "/"
    assert urls.run_url("r", row="3") == "/run/r?row=3"
    assert urls.runs_url(sha="ab") == "/runs?sha=ab"


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.org/x",
        "ftp://example.org",
        "http://",
        "http://[bad",
        "https://user:secret@example.org/x",
        "git@example.org:a/b.git",
    ],
)
def test_only_pages_of_the_web_are_linked(address: str | None) -> None:
    assert urls.web_url(address) is None


def test_a_commit_is_linked_where_the_repository_is_on_the_web() -> None:
    repository = urls.web_url("https://example.org/a/b/")
    assert urls.commit_url(repository, "ab/../c") == "https://example.org/a/b/commit/ab%2F..%2Fc"
    assert urls.commit_url(None, "abc") is None
