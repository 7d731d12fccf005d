"""What can go wrong with history: the store, a run file, the repository.

These live here, not in ``perfci.errors``, since data flows from perfci into history and imports
follow it; the command line maps ``exit_code`` like that of every other error.
"""


class HistoryError(Exception):
    """Base of all errors of history that a user can act on."""

    exit_code = 6


class StoreError(HistoryError):
    """The store cannot be opened, read or written."""


class RunFileError(HistoryError):
    """A run file is truncated, of a newer version, or not one at all."""


class CommitError(HistoryError):
    """A commit cannot be resolved, or there is no repository to resolve it in."""

    exit_code = 2
