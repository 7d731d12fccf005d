"""What people read is complete and true: commands, links, images, no path of one machine."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click

from perfci.cli import cli

_ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|<img[^>]*\ssrc=\"([^\"]+)\"")
_CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+\s+(.+?)\s*$", re.MULTILINE)
_MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:home|root|work|Users|mnt)/\w+")


def _tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", pattern],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [
        _ROOT / each for each in sorted(listed.split("\0")) if each and (_ROOT / each).is_file()
    ]


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                assert found is not None, f"{name} lists {each}, which is not there"
                yield from _commands(found, f"{name} {each}")
    else:
        yield name, command


def find_broken_links(page: Path, text: str) -> list[str]:
    """Relative links and images of a page that lead nowhere, headings of pages included."""
    broken = []
    for match in _LINK.finditer(_CODE.sub("", text)):
        target = match[1] or match[2]
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / unquote(path) if path else page
        if not there.exists() or (anchor and anchor not in _anchors(there, page, text)):
            broken.append(f"{page.name}: {target}")
    return broken


def _anchors(there: Path, page: Path, text: str) -> set[str]:
    body = text if there == page else there.read_text(encoding="utf-8")
    headings = _HEADING.findall(_CODE.sub("", body))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_command_has_help_with_an_example() -> None:
    helps = {name: command.help or "" for name, command in _commands(cli, "perfci")}
    assert helps
    assert [name for name, text in helps.items() if name not in text.partition("Example")[2]] == []


def test_every_command_is_in_the_documentation() -> None:
    pages = [_ROOT / "README.md", *_tracked("docs/*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name, _ in _commands(cli, "perfci") if name not in text] == []


def test_what_is_read_of_an_event_is_in_the_documentation() -> None:
    page = (_ROOT / "docs/ci.md").read_text(encoding="utf-8")
    readers = [*(_ROOT / "perfci/ci").glob("events_*.py"), _ROOT / "perfci/ci/providers.py"]
    source = "\n".join(path.read_text(encoding="utf-8") for path in readers)
    variables = set(re.findall(r"[\"']((?:GITHUB|GITLAB|CI)_\w+)[\"']", source))
    fields = set(re.findall(r"payload\.\w+\(\"([\w.]+)\"\)", source))
    assert min(len(variables), len(fields)) > 10
    assert [each for each in sorted(variables) if f"`{each}`" not in page] == []
    assert [each for each in sorted(fields) if not _is_named(each, page)] == []


def _is_named(field: str, page: str) -> bool:
    """Whether a field stands there whole, or behind `of pull_request:` as the rest of it."""
    first, _, rest = field.partition(".")
    return f"`{field}`" in page or bool(re.search(f"of `{first}`:[^|]*`{rest}`", page))


def test_links_and_images_lead_somewhere() -> None:
    pages = _tracked("*.md")
    assert pages
    broken = [
        link for page in pages for link in find_broken_links(page, page.read_text(encoding="utf-8"))
    ]
    assert broken == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "there.md").write_text("# Two words, `code`\n", encoding="utf-8")
    text = (
        "# Here\n[a](there.md) [b](there.md#two-words-code) [c](#here) [d](https://example.org)\n"
        "[e](gone.md) ![f](gone.png) [g](there.md#gone) [h](#gone)\n"
        '<img alt="i" src="gone.svg">\n```\n[j](in-code.md)\n```\n'
    )
    page.write_text(text, encoding="utf-8")
    assert find_broken_links(page, text) == [
        "page.md: gone.md",
        "page.md: gone.png",
        "page.md: there.md#gone",
        "page.md: #gone",
        "page.md: gone.svg",
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(_ROOT)}: {match[0]}"
        for path in _tracked(".")
        if path != Path(__file__)
        for match in _MACHINE_PATH.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []
