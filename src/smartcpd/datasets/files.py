"""Files of real data sets: found in a folder of the user's, or fetched once and kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smartcpd.errors import DataNotFoundError, MissingExtraError

FOLDER = "SMARTCPD_DATA"
"""The environment variable with the user's own folder of data files."""


@dataclass(frozen=True)
class DataFile:
    """A file that others publish.

    Attributes
    ----------
    title : str
        What it holds, for messages.
    names : tuple of str
        Names under which it is looked for, the publisher's own first.
    url : str
        The address from which a program can fetch it.
    page : str
        The address at which a person finds it.
    sha256 : str or None
        None where the publisher's file could not be inspected when this was written.
    address : callable, optional
        Finds the address of the file where it is not known beforehand.
    """

    title: str
    names: tuple[str, ...]
    url: str
    page: str
    sha256: str | None = None
    address: Callable[[str], str] | None = None

    def found(self) -> Path | None:
        """Return the file in the user's folder, if it is there."""
        folder = os.environ.get(FOLDER)
        if not folder:
            return None
        paths = (Path(folder) / name for name in self.names)
        return next((path for path in paths if path.is_file()), None)

    def path(self, fetch: bool = True) -> Path:
        """Return the file in the user's folder, or in the cache, fetched if need be.

        Raises
        ------
        DataNotFoundError
            If it is nowhere; the message says what to put where.
        MissingExtraError
            If the file would have to be fetched and pooch is not installed.
        """
        path = self.found() or self._kept()
        if path is not None:
            return path
        if not fetch:
            raise self._missing("it is not on this machine")
        return self._fetched()

    def _kept(self) -> Path | None:
        """Return the file as it was fetched before."""
        try:
            import pooch
        except ImportError:
            return None
        path = Path(pooch.os_cache("smartcpd")) / self.names[0]
        return path if path.is_file() else None

    def _fetched(self) -> Path:
        try:
            import pooch
        except ImportError:
            reason = MissingExtraError("pooch", "data", "Fetching data")
            raise self._missing(str(reason).rstrip(".")) from None
        cache = pooch.os_cache("smartcpd")
        try:
            url = self.url if self.address is None else self.address(self.url)
            known = None if self.sha256 is None else f"sha256:{self.sha256}"
            return Path(
                pooch.retrieve(
                    url, known_hash=known, fname=self.names[0], path=cache, progressbar=False
                )
            )
        except (OSError, ValueError) as error:
            raise self._missing(f"it could not be fetched ({_first_line(error)})") from error

    def _missing(self, reason: str) -> DataNotFoundError:
        folder = os.environ.get(FOLDER)
        where = f"the folder {folder}" if folder else f"a folder and set {FOLDER} to that folder"
        return DataNotFoundError(
            f"{self.title} is needed, but {reason}. Download it from {self.page} and put it, "
            f"named {self.names[0]}, into {where}."
        )


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
