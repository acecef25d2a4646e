"""The folder of a run: where things are in it, and when it may be written to."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from smartcpd._app.run_folder.checkpoints import CheckpointFolders
from smartcpd._app.run_folder.factors import write_factors
from smartcpd._app.run_folder.record import RunRecord
from smartcpd._fitting import persistence
from smartcpd.errors import InvalidDataError, InvalidParameterError, ModelNotFoundError

RESULTS = ("report.html", "factors", "model.npz", "model.json")
"""What a run leaves in its folder, in the order in which it is put there."""
REPORT_BYTES = 500_000
BYTES_A_NUMBER = 8 + 20
"""Bytes that a number of a factor takes: in the model, and as text for spreadsheets."""


class RunFolder:
    """The folder of a run.

    It holds ``model.npz`` and ``model.json``, which `CPModel.load` reads too,
    ``factors/<mode>.csv``, ``report.html`` and, while a run goes on, ``checkpoint/``, or
    ``checkpoint-2/`` and so on while it does so beside an older one that it is to replace.

    Parameters
    ----------
    path : path
        Need not exist yet. A model that `CPModel.save` wrote is read by its path, too.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel
    >>> from smartcpd._app.run_folder import RunFolder
    >>> path = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="poisson").save("model")
    >>> RunFolder(path).load().model
    CPModel(shape=2x3, rank=1, loss=poisson)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.model = self.path / persistence.RUN_MODEL
        """The path of the model, without a suffix."""
        self.header = self.path / "model.json"
        self.report = self.path / "report.html"
        self.factors = self.path / "factors"
        stem = Path(os.fspath(path).removesuffix(".npz").removesuffix(".json"))
        if not self.path.is_dir() and Path(f"{stem}.npz").is_file():
            # What `CPModel.save` wrote has a name of its own, and no folder.
            self.model, self.header = stem, Path(f"{stem}.json")
            self.report = Path(f"{stem}.html")
        self.checkpoints = CheckpointFolders(self.path)
        self.replaced = False
        """Whether a run was put here by `replacement`, at least its model."""

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoint of a run that goes on."""
        return self.checkpoints.current

    @property
    def resumable(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return self.checkpoints.resumable

    @property
    def complete(self) -> bool:
        """Whether a run is here that was not interrupted."""
        try:
            run = persistence.read_run(self.model)
            return run is None or not run["status"]["interrupted"]
        except (InvalidDataError, KeyError, TypeError):  # whatever it is, it is not ours to remove
            return True
        except OSError:
            return False

    def check(self, force: bool = False, resume: bool = False) -> None:
        """Raise an error unless a run may be written here.

        Parameters
        ----------
        force : bool
            Replace the run that is there.
        resume : bool
            Go on with the run that is there.
        """
        if resume:
            self._check_resumable()
        elif not force:
            self._check_free()

    def claim(self, resume: bool = False, n_numbers: int = 0) -> None:
        """Make the folder ready for a run that `check` allowed, with so many numbers in its model.

        What could not be written when the fit is done is refused before it begins. Nothing of
        another run goes: a new run has a checkpoint of its own, beside those that are there.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            trial = self.path / f".{uuid.uuid4().hex}"
            trial.touch()
            trial.unlink()
            free = shutil.disk_usage(self.path).free
        except OSError as error:
            raise InvalidParameterError(
                f"Cannot write to {self.path}: {error.strerror or error}. Choose another folder "
                "with --out."
            ) from None
        needed = REPORT_BYTES + BYTES_A_NUMBER * n_numbers
        if free < needed:
            raise InvalidParameterError(
                f"The results need about {needed / 1e6:,.3g} MB in {self.path}, and the disk has "
                f"{free / 1e6:,.3g} MB left. Make room, or choose another folder with --out."
            )
        if not resume:
            try:
                self.checkpoints.begin()
            except OSError as error:
                raise InvalidParameterError(
                    f"Cannot write to {self.path}: {error.strerror or error}. Choose another "
                    "folder with --out."
                ) from None

    def abandon(self) -> None:
        """Leave nothing behind of a new run that failed before there was a model."""
        self.checkpoints.abandon()

    @contextmanager
    def replacement(self) -> Iterator[RunFolder]:
        """Yield a folder beside what is here, which takes its place when the run in it is whole.

        A run that is broken off when its model was saved takes the place as well if the user wants
        to stop, or if there is no other run here and no checkpoint to make it anew from.
        """
        beside = RunFolder(self.path / f".new-{uuid.uuid4().hex}")
        try:
            yield beside
            self._take(beside)
        except BaseException as error:
            wanted = isinstance(error, KeyboardInterrupt) or not (self.complete and self.resumable)
            if wanted and beside.header.exists():
                self._take(beside)
            raise
        finally:
            shutil.rmtree(beside.path, ignore_errors=True)

    def _take(self, beside: RunFolder) -> None:
        """Put a run in the place of the one that is here; its description comes last."""
        for name in RESULTS:
            old, new = self.path / name, beside.path / name
            if old.is_dir() or not new.exists():
                with suppress(FileNotFoundError):
                    os.rename(old, beside.path / f"old-{name}")
            if new.exists():
                os.replace(new, old)
        self.replaced = True

    def _check_free(self) -> None:
        if self.header.exists():
            raise InvalidParameterError(
                f"{self.path} holds a finished run. Choose another folder with --out, or replace "
                "it with --force."
                if not self.resumable
                else f"{self.path} holds a run that was interrupted. Go on with --resume, or "
                "replace it with --force."
            )
        if self.resumable:
            raise InvalidParameterError(
                f"{self.path} holds a run that is not finished. Go on with --resume, or replace "
                "it with --force."
            )
        strangers = [name for name in RESULTS if (self.path / name).exists()]
        if strangers:
            raise InvalidParameterError(
                f"{self.path} holds {', '.join(strangers)} but no run, and a run would replace "
                "that. Choose another folder with --out, or replace it with --force."
            )

    def _check_resumable(self) -> None:
        if self.resumable:
            return
        state = "holds a finished run" if self.header.exists() else "holds no run"
        fix = "Fit again with --force" if self.header.exists() else "Leave out --resume"
        raise InvalidParameterError(
            f"{self.path} {state}, so there is nothing to resume. {fix}, or name the folder with "
            "--out."
        )

    def save_model(self, run: RunRecord) -> None:
        """Write the model, and beside it what is known of the run so far.

        Every file is replaced whole or not at all, here and in `finish`.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        persistence.save(run.model, self.model, run.to_dict())

    def finish(self, run: RunRecord) -> Path:
        """Write all that is now known of the run whose model is saved, its factors as tables and
        the report; return the path of that."""
        persistence.tell(self.model, run.to_dict())
        write_factors(self.factors, run.model)
        return self.write_report(run)

    def renamed(self, run: RunRecord, names: Mapping[int, str]) -> RunRecord:
        """Return the run with names for some of its components, which are kept here."""
        named = replace(run, names={**run.names, **names})
        persistence.tell(self.model, named.to_dict())
        return named

    def write_report(self, run: RunRecord) -> Path:
        """Write the page, from what is kept of the run."""
        from smartcpd.report.write import write_report  # `smartcpd show` does without

        return write_report(
            self.report,
            run.shown,
            history=run.history,
            status=run.status if run.history else None,
            quality=run.quality,
            settings=run.settings,
            notes=run.notes,
            command=run.command,
            title=run.title,
            stability=run.stability,
            diagnosis=run.diagnosis,
            rank=run.rank,
            names=run.names,
            selection=run.selection,
        )

    def load(self) -> RunRecord:
        """Read the run back; nothing in the folder is ever executed."""
        if not self.header.exists():
            what = "is not a folder" if not self.path.is_dir() else "holds no model.json"
            raise ModelNotFoundError(
                f"{self.path} {what}; name a folder that 'smartcpd fit' has written."
            )
        model = persistence.load(self.model)
        given = persistence.read_run(self.model)
        try:
            if given is None:
                return RunRecord.of_model(model)
            return RunRecord.from_dict(model, given)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidDataError(
                f"{self.header} does not tell of a run ({error}); it may be damaged. CPModel.load "
                "still reads the model."
            ) from None
