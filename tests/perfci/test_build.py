"""Builds: what a folder is named by, and what a killed or a concurrent build leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch
import sided

from perfci.build import Build, build
from perfci.config import Config, load_config
from perfci.errors import BuildEnvironmentError
from perfci.kernel import Variant, discover
from perfci.toolchain import compile_command, find_compiler, require_compiler

_HEADER = "#define EXTRA 0.0f\n"
_SOURCE = '#include "extra.h"\n' + scratch.PLAIN.replace("+ b;", "+ b + EXTRA;")


def _config(root: Path, **flags: Any) -> Config:
    return load_config(root, environment={}, cache=str(root.parent / "cache"), **flags)


def _variants(root: Path) -> list[Variant]:
    return [variant for kernel in discover(root / "kernels") for variant in kernel.variants]


def _built(root: Path, **flags: Any) -> Build:
    (only,) = build(_variants(root), _config(root, **flags))
    return only


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One kernel of one variant, which includes a header."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, plain__cpp=_SOURCE, extra__h=_HEADER)
    return root


def _cached_folders(root: Path) -> list[str]:
    return sorted(each.name for each in (root.parent / "cache/build").iterdir())


def test_what_is_unchanged_is_not_compiled_again(root: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    heard = lambda *step: steps.append(step)  # noqa: E731
    (first,) = build(_variants(root), _config(root), on_step=heard)
    assert (first.failed, first.cached, steps) == (False, False, [(1, 1, "axpb/plain")])
    assert first.compile_s > 0
    (second,) = build(_variants(root), _config(root), on_step=heard)
    assert second == replace(first, cached=True)
    assert len(steps) == 1
    assert len(_cached_folders(root)) == 1


def _another_header(root: Path) -> None:
    (root / "kernels/axpb/extra.h").write_text("#define EXTRA 1.0f\n")


def _another_flag(root: Path) -> None:
    (root / "kernels/axpb/plain.cpp").write_text('// perfci: flags = ["-ffast-math"]\n' + _SOURCE)


def _another_library(root: Path) -> None:
    (root / "kernels/axpb/plain.cpp").write_text('// perfci: libraries = ["m"]\n' + _SOURCE)


def _another_name(root: Path) -> None:
    (root / "kernels/axpb").rename(root / "kernels/renamed")


def _another_variant_name(root: Path) -> None:
    (root / "kernels/axpb/plain.cpp").rename(root / "kernels/axpb/renamed.cpp")


def _another_compiler(root: Path) -> None:
    compiler = root / "cxx"
    compiler.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo "another 1.0"; else exec g++ "$@"; fi\n'
    )
    compiler.chmod(0o755)
    (root / "pyproject.toml").write_text(f'[tool.perfci]\ncxx = "{compiler}"\n')


def _another_option_of_the_compiler(root: Path) -> None:
    (root / "pyproject.toml").write_text(f'[tool.perfci]\ncxx = "g++ -I{root}/more"\n')


@pytest.mark.parametrize(
    "change",
    [
        _another_header,
        _another_flag,
        _another_library,
        _another_name,
        _another_variant_name,
        _another_compiler,
        _another_option_of_the_compiler,
    ],
)
def test_what_the_code_depends_on_is_another_build(
    root: Path, change: Callable[[Path], None]
) -> None:
    first = _built(root)
    change(root)
    second = _built(root)
    assert (second.failed, second.cached) == (False, False)
    assert second.digest != first.digest
    assert second.library != first.library
    assert first.library is not None
    assert first.library.is_file()


def test_a_compiler_behind_a_wrapper_is_known_by_its_own_version(
    root: Path, tmp_path: Path
) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo wrapper 1; else exec "$@"; fi\n'
    )
    wrapper.chmod(0o755)
    plain, wrapped = find_compiler("g++"), find_compiler(f"{wrapper} g++")
    assert plain is not None
    assert wrapped is not None
    assert wrapped.version == plain.version
    assert _built(root, cxx=f"{wrapper} g++").library is not None


def test_the_same_code_in_another_folder_is_the_same_build(root: Path) -> None:
    first = _built(root)
    other = root.parent / "a checkout's $copy"
    shutil.copytree(root, other)
    assert _built(other) == replace(first, variant=_variants(other)[0], cached=True)


def test_a_source_is_compiled_in_a_folder_with_any_name(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / 'it\'s $HOME: a\\b "c"' / "root")
    scratch.write_kernel(root, plain__cpp=_SOURCE, extra__h=_HEADER)
    assert _built(root).message == ""


@pytest.fixture(params=["ninja", "shell"])
def builder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What runs the compilers: ninja, or the shell where there is no ninja."""
    if request.param == "shell":
        monkeypatch.setattr("perfci.build.find_ninja", lambda: None)
    return str(request.param)


@pytest.mark.usefixtures("builder")
def test_what_does_not_compile_says_why_and_the_others_are_built(root: Path) -> None:
    scratch.write_kernel(
        root,
        broken__cpp='#include "nowhere.h"\n',
        plain__cpp=_SOURCE,
        extra__h=_HEADER,
        eager__py=scratch.EAGER,
    )
    builds = {each.variant.name: each for each in build(_variants(root), _config(root))}
    assert {name: each.failed for name, each in builds.items()} == {
        "broken": True,
        "eager": False,
        "plain": False,
    }
    assert "nowhere.h: No such file" in builds["broken"].message
    assert builds["eager"].library is None
    again = build([builds["broken"].variant], _config(root))
    assert again[0].failed
    assert [name.partition("-")[2][:5] for name in _cached_folders(root)] == ["plain"]


@pytest.mark.usefixtures("builder")
def test_a_build_that_takes_too_long_is_cut_short(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _slow_compiler(root)
    compilers: list[int] = []
    allowed_s: list[float] = []

    class Timer(threading.Timer):
        """One whose time is up once the compiler has begun, however long that takes."""

        def run(self) -> None:
            compilers.append(int((root / "begun").read_text()))
            allowed_s.append(self.interval)
            self.function()

    monkeypatch.setattr(threading, "Timer", Timer)
    ended = _built(root, build_timeout_s=77)
    assert ended.message.startswith("error: cut short after 77 s")
    assert _cached_folders(root) == []
    assert allowed_s == [77]
    assert [scratch.ends(each) for each in compilers] == [True]


@pytest.mark.parametrize(("setting", "name"), [("cxx", "C++"), ("nvcc", "CUDA")])
def test_a_missing_compiler_is_an_error(root: Path, setting: str, name: str) -> None:
    scratch.write_kernel(root, gpu__cu="", plain__cpp=_SOURCE, extra__h=_HEADER)
    broken = {"cxx": "true", "nvcc": "true"} | {setting: "nonexistent"}
    variant = next(
        each for each in _variants(root) if each.name == ("plain" if setting == "cxx" else "gpu")
    )
    with pytest.raises(
        BuildEnvironmentError, match=rf"^nonexistent: no working {name.replace('+', '.')} compiler"
    ):
        build([variant], _config(root, **broken))


def test_a_cache_that_cannot_be_made_is_an_error(root: Path) -> None:
    config = replace(_config(root), cache=root / "pyproject.toml" / "cache")
    with pytest.raises(BuildEnvironmentError, match=r"cannot be created .* set PERFCI_CACHE"):
        build(_variants(root), config)


def _slow_compiler(root: Path) -> None:
    """A compiler that says that it has begun, waits to be told to go on, and links at once."""
    for fifo in ("begun", "go"):
        os.mkfifo(root / fifo)
    compiler = root / "cxx"
    compiler.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "slow 1.0"; exit; fi\n'
        'case " $* " in *" -shared "*) exec g++ "$@";; esac\n'
        f'echo $$ >"{root}/begun"\nread word <"{root}/go"\nexec g++ "$@"\n'
    )
    compiler.chmod(0o755)
    (root / "pyproject.toml").write_text(f'[tool.perfci]\ncxx = "{compiler}"\n')


def _start_build(root: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "perfci", "build", "--json"],
        cwd=root,
        env=scratch.environment(root, {"PERFCI_CACHE": str(root.parent / "cache")}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def test_a_killed_build_leaves_nothing_that_counts(root: Path) -> None:
    _slow_compiler(root)
    with _start_build(root) as program:
        compiler = int((root / "begun").read_text())
        watched = os.pidfd_open(compiler)
        program.send_signal(signal.SIGKILL)
    signal.pidfd_send_signal(watched, signal.SIGKILL)
    os.close(watched)
    (left,) = (root.parent / "cache/build").iterdir()
    assert left.name.startswith("tmp-")
    os.utime(left, (0, 0))
    (root / "pyproject.toml").write_text("[tool.perfci]\n")
    assert not _built(root).failed
    assert [name[:11] for name in _cached_folders(root)] == ["axpb-plain-"]


def test_a_build_in_progress_is_not_swept(root: Path) -> None:
    _slow_compiler(root)
    with _start_build(root) as program:
        (root / "begun").read_text()
        (living,) = (root.parent / "cache/build").iterdir()
        os.utime(living, (0, 0))
        assert not _built(root, cxx="g++").failed
        assert living.is_dir()
        (root / "go").write_text("go\n")
        out, _ = program.communicate()
    assert program.returncode == 0
    assert [each["message"] for each in json.loads(out)] == [""]
    assert len(_cached_folders(root)) == 2


def test_two_builds_of_the_same_variant_at_once_both_succeed(root: Path) -> None:
    _slow_compiler(root)
    begun, go = (os.open(root / fifo, os.O_RDWR) for fifo in ("begun", "go"))
    ended: list[Build] = []
    threads = [threading.Thread(target=lambda: ended.append(_built(root))) for _ in range(2)]
    for thread in threads:
        thread.start()
    compilers = b""
    while compilers.count(b"\n") < 2:
        compilers += os.read(begun, 100)
    os.write(go, b"go\ngo\n")
    for thread in threads:
        thread.join()
    for each in (begun, go):
        os.close(each)
    assert [each.message for each in ended] == ["", ""]
    assert ended[0].library == ended[1].library
    assert len(_cached_folders(root)) == 1


_EXTENSION = """\
#include <torch/extension.h>

torch::Tensor run(torch::Tensor x, double a, double b) { return a * x + b; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("run", &run); }
"""


def _checked(root: Path) -> Mapping[str, str]:
    ended = scratch.perfci(root, "check", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return {each["variant"]: each["status"] for each in json.loads(ended.stdout)["checks"]}


def test_a_side_s_own_environment_is_part_of_the_key_of_what_uses_torch(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, eager__py=scratch.EAGER, plain__cpp=scratch.PLAIN)
    config = load_config(root, environment={}, cache=str(tmp_path / "cache"))
    (kernel,) = discover(config.kernels)
    digests = [
        {each.variant.name: each.digest for each in build(variants, config)}
        for place in (None, sided.installation("one"), sided.installation("other"))
        for variants in [[replace(each, installation=place) for each in kernel.variants]]
    ]
    assert len({each["eager"] for each in digests}) == 3
    assert len({each["plain"] for each in digests}) == 1


def test_an_extension_is_compiled_for_the_torch_of_its_side(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, extension__cpp=_EXTENSION)
    (kernel,) = discover(root / "kernels")
    own = replace(sided.installation("one"), torch=Path("/side/torch"))
    variant = replace(kernel.variants[0], installation=own)
    command = compile_command(
        variant, compiler=require_compiler("g++", "C++"), architectures=(), module_name="module"
    )
    assert "-I/side/torch/include" in command
    assert "-L/side/torch/lib" in command


@pytest.mark.long
def test_a_pytorch_extension_is_a_variant(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, extension__cpp=_EXTENSION)
    assert _checked(root) == {"extension": "passed"}


def test_files_and_functions_are_variants_with_nothing_to_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = scratch.quick(tmp_path / "root")
    table = '[function]\nfunction = "installed.ops:axpb"\ndevices = ["cpu"]\n'
    folder = scratch.write_kernel(root, eager__py=scratch.EAGER)
    (folder / "variants.toml").write_text(table)
    package = tmp_path / "site" / "installed"
    package.mkdir(parents=True)
    (package / "ops.py").write_text("def axpb(x, a, b):\n    return a * x + b\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    assert _checked(root) == {"eager": "passed", "function": "passed"}
