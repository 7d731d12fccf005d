"""Options that several commands share, and what they stand for."""

import json
import math
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from perfci.config import Config, child_environment, load_config
from perfci.errors import UsageError
from perfci.history.errors import NoStoreError, StoreError
from perfci.history.stores import Store, open_store
from perfci.kernel import Kernel, discover
from perfci.selection import Selection
from perfci.toolchain import require_torch
from perfci.workers.passes import PassServer

F = TypeVar("F", bound=Callable[..., Any])

store_option = click.option(
    "--store", metavar="URL", help="Where runs are kept: a file, or sqlite:///PATH."
)
kernels_option = click.option("--kernels", metavar="DIR", help="The folder of kernels.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
device_option = click.option(
    "--device",
    metavar="NAME",
    help="cpu, a GPU's number or UUID, several with commas between, or all GPUs "
    "(default: the first GPU, else the CPU).",
)


def read_passes(
    ctx: click.Context, param: click.Parameter, value: Any
) -> int | Literal["auto"] | None:
    """What --passes says: a number, ``auto``, or nothing."""
    if value is None:
        return None
    if value == "auto":
        return "auto"
    try:
        return click.IntRange(1, 1000).convert(value, param, ctx)
    except click.BadParameter:
        message = f"'{value}' is neither auto nor a whole number from 1 to 1000."
        raise click.BadParameter(message, ctx, param) from None


def selection_options(command: F) -> F:
    """--kernel, --variant, --case and --tier."""
    for option in (
        click.option(
            "--tier",
            type=click.Choice(["smoke", "full"]),
            default="smoke",
            show_default=True,
            help="smoke: the quick cases; full: all of them.",
        ),
        click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this case."),
        click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this one."),
        click.option("--kernel", "names", multiple=True, metavar="NAME", help="Only this kernel."),
    ):
        command = option(command)
    return command


def config_of(store: str | None = None, kernels: str | None = None, **flags: Any) -> Config:
    """The configuration here, with flags on top."""
    return load_config(store=store, kernels=kernels, **flags)


def open_to_read(config: Config) -> Store:
    """The store, for a command that only reads. Raises NoStoreError where there is none."""
    return open_store(config.store, create=False)


def open_to_record(config: Config) -> Store:
    """The store; the first run makes one that is not there, so that what fails leaves none behind.

    That one was made is said, since a name may be mistyped.
    """

    def say(url: str) -> None:
        click.echo(f"there was no store yet: made {url}", err=True)

    return open_store(config.store, on_made=say)


def has_store(config: Config) -> bool:
    """Whether the store is there; what may be wrong with it is for the command that uses it."""
    try:
        open_to_read(config).close()
    except NoStoreError:
        return False
    except StoreError:
        return True
    return True


def selection_of(
    names: tuple[str, ...], variants: tuple[str, ...], cases: tuple[str, ...], tier: str
) -> Selection:
    """The selection that the options describe."""
    chosen: Any = tier
    return Selection(kernels=names, variants=variants, cases=cases, tier=chosen)


def server_of(config: Config) -> PassServer:
    """The fork server for the kernels here. Raises ConfigurationError where they are wrong."""
    return server_for(discover(config.kernels), config)


def server_for(kernels: Iterable[Kernel], config: Config) -> PassServer:
    """The fork server for some kernels. Raises BuildEnvironmentError where torch is missing."""
    require_torch()
    compiling = any(each.declaration.compiles for kernel in kernels for each in kernel.variants)
    return PassServer(child_environment(config.cache), compiling=compiling)


def make_folder(folder: Path) -> None:
    """Make the folder that --out names; UsageError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UsageError(f"{folder}: cannot be made ({reason}); give --out another") from None


def echo_json(value: Any) -> None:
    """Print a value as JSON, which has no word for what is infinite or no number: null."""
    click.echo(_as_json(value))


def write_json(path: Path, value: Any) -> None:
    """Write what echo_json prints to a file, whole or not at all. Raises UsageError."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        try:
            temporary.write_text(_as_json(value) + "\n", encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _as_json(value: Any) -> str:
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def echo_lines(lines: list[str]) -> None:
    """Print a report."""
    click.echo("\n".join(lines))
