"""perfci serve: the dashboard."""

import click

from perfci.cli.options import (
    config_of,
    open_to_read,
    store_option,
)
from perfci.dashboard.app import serve
from perfci.errors import UsageError


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8050, show_default=True)
@click.option("--repository-url", metavar="URL", help="Where commits can be seen on the web.")
@store_option
def command(host: str, port: int, repository_url: str | None, store: str | None) -> None:
    r"""Serve the dashboard until Ctrl-C.

    \b
    Example:
      perfci serve
      perfci serve --port 9000 --repository-url https://github.com/OWNER/NAME
    """
    config = config_of(store, repository_url=repository_url)
    open_to_read(config).close()

    def announce(bound_port: int) -> None:
        click.echo(f"dashboard of {config.store} at http://{host}:{bound_port}/ (Ctrl-C ends it)")

    try:
        serve(
            config.store,
            host,
            port,
            repository_url=config.repository_url,
            on_listening=announce,
        )
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]  # the address is said already
        raise UsageError(
            f"cannot listen at {host}:{port}: {reason}; choose another with --port"
        ) from None
