"""What a variant's code depends on."""

from pathlib import Path

from perfci.sources import digest_files, source_files


def _write(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


def _names(source: Path, *search: Path) -> list[str]:
    found = source_files(source, search)
    return sorted(str(path.relative_to(source.parents[1])) for path in found)


def test_headers_are_followed_to_the_end_and_in_a_circle(tmp_path: Path) -> None:
    _write(
        tmp_path / "kernel",
        main__cpp='#include "a.h"\n  #  include <b.h>\n#include <vector>\n// "c.h"\n',
        a__h='#include "../shared/d.h"\n#include "a.h"\n#include "missing.h"\n',
        b__h="never found in angle brackets beside the source",
        c__h="",
    )
    _write(tmp_path / "shared", b__h="", d__h='#if 0\n#include "e.h"\n#endif\n', e__h="")
    assert _names(tmp_path / "kernel/main.cpp", tmp_path / "shared") == [
        "kernel/a.h",
        "kernel/main.cpp",
        "shared/b.h",
        "shared/d.h",
        "shared/e.h",
    ]


def test_a_header_beside_the_includer_goes_first(tmp_path: Path) -> None:
    _write(tmp_path / "kernel", main__cpp='#include "a.h"\n', a__h="")
    _write(tmp_path / "shared", a__h="")
    assert _names(tmp_path / "kernel/main.cpp", tmp_path / "shared") == [
        "kernel/a.h",
        "kernel/main.cpp",
    ]


def test_the_digest_is_that_of_names_and_contents_wherever_they_lie(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        _write(tmp_path / folder, a__h="1", b__h="2")
    one, two = ([tmp_path / folder / name for name in ("a.h", "b.h")] for folder in ("one", "two"))
    assert digest_files(one) == digest_files(reversed(two))
    (tmp_path / "two/a.h").write_text("2")
    assert digest_files(one) != digest_files(two)
    (tmp_path / "two/b.h").write_text("1")
    assert digest_files(one) != digest_files(two)
