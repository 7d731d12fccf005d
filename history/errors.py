"""What can go wrong with history: the store, a run file, the repository.

These live here, not in ``perfci.errors``, since data flows from perfci into history and imports
follow it; the command line maps ``exit_code`` like that of every other error.
"""


class HistoryError(Exception):
    """Base of all errors of history that a user can act on."""

    exit_code = 6


class StoreError(HistoryError):
    """The store cannot be opened, read or written."""


class NoStoreError(StoreError):
    """There is no store where one is to be read."""


class RunFileError(HistoryError):
    """A run file is truncated, of a newer version, or not one at all."""


class ForeignFileError(RunFileError):
    """A file is whole JSON and does not say that it is a run file."""


class CommitError(HistoryError):
    """A commit cannot be resolved, or there is no repository to resolve it in."""

    exit_code = 2


class SyncError(HistoryError):
    """Runs cannot be exchanged through a remote, and trying again is of no use."""


class UnreachableError(SyncError):
    """The remote did not answer, and may do so another time."""


class OvertakenError(SyncError):
    """A push met that of another, and may go through on top of it."""
