"""Builds: one folder a variant, named by the digest of all that its code depends on.

A build compiles into a temporary folder and renames it into place, so that a killed or a
concurrent build leaves either a whole folder or none. A source that does not compile is an
outcome with the compiler's message; a compiler that is not there is an error.
"""

import fcntl
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perfci.binary.identity import FORM, Code, read_code, read_source
from perfci.binary.ptxas import without_reports
from perfci.config import Config, inherited_environment
from perfci.errors import BuildEnvironmentError
from perfci.history.text import printable
from perfci.kernel import Variant
from perfci.sources import digest_files, source_files
from perfci.toolchain import (
    INCLUDE,
    Compiler,
    compile_command,
    cuda_architectures,
    find_ninja,
    host_processor_digest,
    link_command,
    require_compiler,
    torch_version,
)

LIBRARY = "library.so"
_OBJECT = "object.o"
_RECORD = "build.json"
_MESSAGE_LIMIT = 4000
_SWEEP_AGE_S = 60
_STATUS = "@perfci "


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What became of building one variant.

    ``library`` is None where nothing is compiled (``.py`` files, functions) and where it failed;
    then ``message`` holds the compiler's words. ``code`` says what machine code is in it.
    """

    variant: Variant
    digest: str
    library: Path | None = None
    message: str = ""
    code: Code = field(default_factory=Code)
    compile_s: float = 0.0
    cached: bool = False

    @property
    def failed(self) -> bool:
        """Whether the variant could not be built."""
        return bool(self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    variant: Variant
    digest: str
    compile: tuple[str, ...]
    link: tuple[str, ...]

    def folder(self, cache: Path) -> Path:
        return cache / f"{self.variant.kernel}-{self.variant.name}-{self.digest[:20]}"


def build(
    variants: Sequence[Variant],
    config: Config,
    *,
    architectures: Sequence[str] = (),
    on_step: Callable[[int, int, str], None] = lambda _done, _total, _name: None,
) -> list[Build]:
    """Build variants in parallel; one Build each, in their order.

    ``on_step(done, total, name)`` hears of each compilation that ends. Raises
    BuildEnvironmentError where a needed compiler is missing.
    """
    cache = _cache_folder(config)
    prepared = [_prepare(variant, config, architectures) for variant in variants]
    missing = [
        each
        for each in prepared
        if isinstance(each, _Target) and not (each.folder(cache) / LIBRARY).is_file()
    ]
    compiled = _compile(missing, cache, config, on_step) if missing else {}
    return [
        each if isinstance(each, Build) else compiled.get(each.digest) or _cached(each, cache)
        for each in prepared
    ]


def _prepare(variant: Variant, config: Config, architectures: Sequence[str]) -> "Build | _Target":
    """Either the finished Build of a variant with nothing to compile, or what to compile."""
    if variant.path is None:
        return Build(variant=variant, digest=_digest([variant.function or "", _runtime(variant)]))
    if variant.kind == "python":
        content = variant.path.read_bytes()
        digest = _digest([hashlib.sha256(content).hexdigest(), _runtime(variant)])
        return Build(variant=variant, digest=digest, code=read_source(content))
    cuda = variant.path.suffix == ".cu"
    compiler = require_compiler(*((config.nvcc, "CUDA") if cuda else (config.cxx, "C++")))
    if cuda and not cuda_architectures(variant, architectures):
        asked = ", ".join(architectures)
        needed = variant.declaration.architecture
        return Build(
            variant=variant, digest="", message=f"declared for {needed} and later, not {asked}"
        )
    digest = _source_digest(variant, compiler, architectures)
    how: dict[str, Any] = {
        "compiler": compiler,
        "architectures": architectures,
        "module_name": module_name(digest),
    }
    return _Target(
        variant=variant,
        digest=digest,
        compile=tuple(compile_command(variant, **how)),
        link=tuple(link_command(variant, **how, object_file=_OBJECT)),
    )


def compiler_words(build: Build) -> str:
    """All that the compilers printed of a variant; empty where nothing was, or is kept, of it."""
    if build.library is None:
        return ""
    try:
        return str(_read_record(build.library.parent)["log"])
    except OSError:
        return ""


def module_name(digest: str) -> str:
    """The Python module's name of a PyTorch extension: by content, so that two can coexist."""
    return f"perfci_{digest[:16]}"


def _source_digest(variant: Variant, compiler: Compiler, architectures: Sequence[str]) -> str:
    assert variant.path is not None
    declared = variant.declaration
    files = source_files(variant.path, [INCLUDE, variant.path.parent])
    flags = [*declared.flags, *declared.libraries]
    template = compile_command(
        variant, compiler=compiler, architectures=architectures, module_name=""
    )
    # Folders differ between checkouts of the same code, so that only flags count.
    general = [each for each in template if "/" not in each]
    general += shlex.split(compiler.path)[1:]
    return _digest(
        [
            variant.kernel,
            variant.name,
            digest_files(files),
            general,
            flags,
            compiler.version,
            _runtime(variant) if variant.kind == "extension" else None,
            host_processor_digest() if any("native" in flag for flag in flags) else None,
            FORM,  # since the digests of the code are kept with a build
        ]
    )


def _runtime(variant: Variant) -> str | None:
    """What runs a variant that uses torch: its own environment, else the torch that is here."""
    return variant.installation.digest if variant.installation else torch_version()


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _cache_folder(config: Config) -> Path:
    cache = config.cache / "build"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildEnvironmentError(
            f"{cache}: cannot be created ({error.strerror}); set PERFCI_CACHE to a folder that can"
        ) from None
    return cache


def _cached(target: _Target, cache: Path) -> Build:
    folder = target.folder(cache)
    kept = _read_record(folder)
    return Build(
        variant=target.variant,
        digest=target.digest,
        library=folder / LIBRARY,
        code=Code(**kept["code"]),
        compile_s=kept["compile_s"],
        cached=True,
    )


def _read_record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    return record


def _compile(
    targets: Sequence[_Target],
    cache: Path,
    config: Config,
    on_step: Callable[[int, int, str], None],
) -> dict[str, Build]:
    _sweep(cache)
    unique = list({each.digest: each for each in targets}.values())
    with _temporary_folder(cache) as scratch:
        for target in unique:
            _write_script(scratch, target)
        log = _run(_builder(scratch, unique), config.build_timeout_s, on_step)
        return {each.digest: _collect(each, scratch, cache, log) for each in unique}


@contextmanager
def _temporary_folder(cache: Path) -> Iterator[Path]:
    """A folder that is locked while its owner lives, so that others know when to sweep it."""
    scratch = Path(tempfile.mkdtemp(prefix="tmp-", dir=cache))
    with (scratch / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _sweep(cache: Path) -> None:
    """Remove what killed builds have left: temporary folders whose lock nobody holds."""
    for folder in cache.glob("tmp-*"):
        try:
            if time.time() - folder.stat().st_mtime < _SWEEP_AGE_S:
                continue  # its owner may not have locked it yet
            with (folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its owner is alive


def _write_script(scratch: Path, target: _Target) -> None:
    """Write the script that compiles a target in a folder of its own, with its log and times."""
    folder = scratch / target.digest
    folder.mkdir()
    compiling = shlex.join([*target.compile, "-o", _OBJECT])
    linking = shlex.join([*target.link, "-o", LIBRARY])
    _script(scratch, target).write_text(
        f"cd {shlex.quote(str(folder))}\nstart=$(date +%s.%N)\n"
        f"{{ {compiling} && {linking}; }} >log 2>&1\n"
        "status=$?\necho $start $(date +%s.%N) >times\nexit $status\n",
        encoding="utf-8",
    )


def _script(scratch: Path, target: _Target) -> Path:
    return scratch / target.digest / "compile.sh"


def _builder(scratch: Path, targets: Sequence[_Target]) -> list[str]:
    """The command that runs every script: ninja, all at once; a shell where there is no ninja."""
    ninja = find_ninja()
    names = [f"{target.variant.kernel}/{target.variant.name}" for target in targets]
    if ninja is None:
        lines = ["trap 'kill 0' TERM"]
        for number, (target, name) in enumerate(zip(targets, names, strict=True), 1):
            lines += [
                f"sh {shlex.quote(str(_script(scratch, target)))} & wait $!",
                f"echo '{_STATUS}{number} {len(targets)} {name}'",
            ]
        (scratch / "build.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return ["sh", str(scratch / "build.sh")]
    lines = ["rule compile", "  command = sh $script", "  description = $name"]
    for target, name in zip(targets, names, strict=True):
        lines += [
            f"build {_ninja_escaped(str(scratch / target.digest / LIBRARY))}: compile",
            f"  script = {_ninja_escaped(shlex.quote(str(_script(scratch, target))))}",
            f"  name = {name}",
        ]
    (scratch / "build.ninja").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [ninja, "-C", str(scratch), "-k", "0"]


def _run(command: Sequence[str], timeout_s: float, on_step: Callable[[int, int, str], None]) -> str:
    """Let a builder run every target, failed or not, and return what it printed."""
    printed: list[str] = []
    cut_short = threading.Event()

    def end() -> None:
        cut_short.set()
        process.terminate()

    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=inherited_environment(NINJA_STATUS=f"{_STATUS}%f %t "),
        start_new_session=True,
    ) as process:
        # Not killed: the builder ends its compilers, which have process groups of their own.
        killer = threading.Timer(timeout_s, end)
        killer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                printed.append(line)
                step = re.match(rf"{_STATUS}(\d+) (\d+) (\S+)", line)
                if step:
                    on_step(int(step[1]), int(step[2]), step[3])
        except BaseException:
            process.terminate()
            raise
        finally:
            killer.cancel()
    if cut_short.is_set():
        printed.append(f"error: cut short after {timeout_s:g} s; build_timeout_s allows no more\n")
    return "".join(printed)


def _collect(target: _Target, scratch: Path, cache: Path, log: str) -> Build:
    folder = scratch / target.digest
    words, times = _read(folder / "log"), _read(folder / "times")
    if not times or not (folder / LIBRARY).is_file():
        message = (_compiler_message(words) if times else "") or _compiler_message(log)
        return Build(variant=target.variant, digest=target.digest, message=message)
    start, end = (float(each) for each in times.split())
    compile_s = max(0.0, end - start)
    code = read_code(folder / LIBRARY, folder / _OBJECT)
    (folder / _OBJECT).unlink()
    kept = {
        "compile_s": compile_s,
        "compile": target.compile,
        "link": target.link,
        "log": words,
        "code": asdict(code),
    }
    (folder / _RECORD).write_text(json.dumps(kept), encoding="utf-8")
    final = target.folder(cache)
    try:
        folder.rename(final)
    except OSError:
        if not (final / LIBRARY).is_file():
            raise
    return Build(
        variant=target.variant,
        digest=target.digest,
        library=final / LIBRARY,
        code=code,
        compile_s=compile_s,
    )


def _compiler_message(log: str) -> str:
    """The compiler's words from the first error on, cut to what a row should carry."""
    lines = without_reports(log).strip().splitlines()
    first = next((i for i, line in enumerate(lines) if "error" in line.lower()), 0)
    message = printable("\n".join(lines[first:]))
    return message if len(message) <= _MESSAGE_LIMIT else message[:_MESSAGE_LIMIT] + " …"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _ninja_escaped(text: str) -> str:
    return re.sub(r"([$ :])", r"$\1", text)
