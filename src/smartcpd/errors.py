"""The errors that this package raises, as types a caller can tell apart.

Every message names the object, the value and the fix.

Examples
--------
>>> import smartcpd
>>> from smartcpd.errors import SmartCPDError
>>> try:
...     smartcpd.losses.get("poison")
... except SmartCPDError as error:
...     print(str(error)[:46])
Unknown loss 'poison'. Did you mean 'poisson'?
"""

__all__ = [
    "CheckpointError",
    "ClusterError",
    "DataNotFoundError",
    "DivergedError",
    "IncompatibleError",
    "InvalidDataError",
    "InvalidParameterError",
    "MissingExtraError",
    "ModelNotFoundError",
    "SmartCPDError",
]


class SmartCPDError(Exception):
    """Base of every error raised on purpose by this package."""


class InvalidDataError(SmartCPDError, ValueError):
    """The data cannot be decomposed as asked: a NaN, a negative count, an empty mode."""


class InvalidParameterError(SmartCPDError, ValueError):
    """A parameter has a value or a type that makes no sense on its own."""


class IncompatibleError(SmartCPDError, ValueError):
    """Two choices that are each fine do not go together."""


class DivergedError(SmartCPDError, ArithmeticError):
    """The factors became infinite or NaN before a single good model was seen."""


class MissingExtraError(SmartCPDError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f'Install it with: pip install "smartcpd[{extra}]"'
        )


class ModelNotFoundError(SmartCPDError, FileNotFoundError):
    """One of the two files of a saved model is not there."""


class DataNotFoundError(SmartCPDError, FileNotFoundError):
    """A file of data is not there, and could not be fetched."""


class CheckpointError(SmartCPDError):
    """A fit cannot go on from a checkpoint, or cannot write one."""


class ClusterError(SmartCPDError, RuntimeError):
    """A cluster cannot go on: its scheduler is gone, or a shard is too large."""
