"""Every error that stops perfci, each with its exit code.

A kernel that fails is a row and the run goes on; an environment that fails is one of these.
A message is one line: what happened, where, and what to do.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means; scripts rely on these numbers."""

    FINE = 0
    REGRESSION_OR_INCORRECT = 1
    USAGE = 2
    CONFIGURATION = 3
    BUILD_ENVIRONMENT = 4
    DEVICE = 5
    STORE = 6
    INCOMPARABLE = 7
    INCONCLUSIVE = 8
    MISSING_CELLS = 9
    UNCAUGHT = 70
    INTERRUPTED = 130
    CLOSED_PIPE = 141


class PerfciError(Exception):
    """Base of all errors that a user can act on."""

    exit_code = ExitCode.UNCAUGHT


class UsageError(PerfciError):
    """The command line asks for something that cannot be meant."""

    exit_code = ExitCode.USAGE


class ConfigurationError(PerfciError):
    """A file of the user's (configuration, cases, reference) is wrong."""

    exit_code = ExitCode.CONFIGURATION


class BuildEnvironmentError(PerfciError):
    """A compiler or build tool is missing or unusable."""

    exit_code = ExitCode.BUILD_ENVIRONMENT


class DeviceError(PerfciError):
    """The device asked for is not there or cannot be used."""

    exit_code = ExitCode.DEVICE


class IncomparableError(PerfciError):
    """What is to be compared cannot be, whatever is measured."""

    exit_code = ExitCode.INCOMPARABLE


class MissingError(PerfciError):
    """What was asked to be shown or compared has not been recorded."""

    exit_code = ExitCode.MISSING_CELLS


class EventError(PerfciError):
    """What a provider of continuous integration says of an event cannot be understood."""

    exit_code = ExitCode.USAGE


class ParcelError(PerfciError):
    """A folder holds no parcel of a runner, or not all of one: the runner has not reported."""

    exit_code = ExitCode.MISSING_CELLS
