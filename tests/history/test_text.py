import pytest

from perfci.history.text import is_safe, one_line, printable, without_commands


@pytest.mark.parametrize("text", ["", "plain µs", "two\nlines\tand a tab", "emoji 👩‍💻", "日本語"])
def test_ordinary_text_is_safe_and_stays(text):
    assert is_safe(text)
    assert printable(text) == text


@pytest.mark.parametrize(
    "bad", ["\x00", "\x1b", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800"]
)
def test_what_could_change_a_terminal_is_replaced(bad):
    assert not is_safe(f"a{bad}b")
    assert printable(f"a{bad}b") == "a\ufffdb"


def test_one_line_joins_cuts_and_cleans():
    assert one_line("  a\n\n b\tc\x1b[31m ") == "a b c\ufffd[31m"
    assert one_line("x" * 300) == "x" * 199 + "…"
    assert one_line("x" * 200) == "x" * 200


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a::error::b", "a::error::b"),
        ("::error::b", ": :error::b"),
        ("  ::stop-commands::b", "  : :stop-commands::b"),
        ("a ##[error]b", "a ## [error]b"),
    ],
)
def test_no_line_is_a_command_to_github(line, shown):
    assert without_commands(line) == shown
