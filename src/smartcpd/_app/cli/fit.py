"""``smartcpd fit``."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.text import Text

from smartcpd._app.cli import fit_options as how
from smartcpd._app.cli import options
from smartcpd._app.cli.codes import INTERRUPTED
from smartcpd._app.cli.console import print_json, say, stdout, waiting
from smartcpd._app.cli.exposures import ExposureOptions, as_selected, said_of
from smartcpd._app.cli.given_names import GivenNames
from smartcpd._app.cli.inputs import (
    described,
    load,
    needs,
    opened,
    refuse_values,
    source_facts,
    stem,
)
from smartcpd._app.cli.open_rank import found_rank, rank_of
from smartcpd._app.cli.show import print_run, summary
from smartcpd._app.cli.table_options import TableOptions
from smartcpd._app.run_folder import RunFolder, RunRecord
from smartcpd._app.signals import signals
from smartcpd._inference.wording import counted
from smartcpd.errors import InvalidParameterError

NEVER = 1e9
"""Seconds that no run lasts."""
EXAMPLES = """\
Examples:

smartcpd fit events.csv.gz --modes date,hour,area,type --rank 10

smartcpd fit sales.parquet --modes day,shop,product --value amount --bin day=1w --top product=200

smartcpd fit counts.tns --loss poisson --rank 20 --out counts-20

smartcpd fit big.parquet --modes time@1d,time@hour,user --max-time 3600 --checkpoint-every 60

smartcpd fit big.parquet --modes time@1d,time@hour,user --max-time 3600 --resume
"""


def fit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A table (.csv, .tsv, .parquet, .json, .xlsx::sheet, .db::table ..., also packed; "
            "a folder or a pattern of such files, a URL, - for standard input) or a tensor (.tns, "
            ".npy, .npz, .mat, .zarr, .nc, .h5, .parts; 'file.npz::name' for one of several).",
        ),
    ],
    *,
    table: TableOptions,
    per: ExposureOptions,
    rank: how.Rank = "10",
    loss: how.LossName = "auto",
    method: how.Method,
    out: how.Out = None,
    force: how.Force = False,
    resume: how.Resume = False,
    checkpoint_every: how.CheckpointEvery = 30.0,
    name: how.Names = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """From a table or a tensor to named components and a page to read.

    The folder gets model.npz and model.json, factors/*.csv and report.html.
    """
    if force and resume:
        raise typer.BadParameter("--force replaces a run and --resume goes on with it; give one.")
    if method.consensus and method.n_init == 1:
        raise typer.BadParameter("--consensus compares starts; ask for some, as by --n-init 5.")
    folder = RunFolder(out or f"{stem(file)}-smartcpd")
    names = GivenNames.read(name)
    job = Job(file, table, rank_of(rank), loss, method, folder, names, per)
    if job.rank is not None:
        job.names.check_rank(job.rank)
    run = job.run(force, resume, checkpoint_every, quiet)
    show_result(run, job, json, quiet)
    if run.status.interrupted:
        raise typer.Exit(INTERRUPTED)


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of the command, from a file to a folder."""

    file: str
    table: TableOptions
    rank: int | None
    """The number of components; None if it is to be found."""
    loss: str
    method: how.Method
    folder: RunFolder
    names: GivenNames = dataclasses.field(default_factory=GivenNames)
    per: ExposureOptions = dataclasses.field(default_factory=ExposureOptions)

    def run(self, force: bool, resume: bool, checkpoint_every: float, quiet: bool) -> Any:
        """Read, fit, save."""
        from smartcpd import losses
        from smartcpd._fitting import fit as fitting
        from smartcpd._problem.loss_choice import as_chosen, choose_loss
        from smartcpd._strategies import registry as solvers

        self.folder.check(force, resume)
        solvers.get(self.method.solver)
        known = None if self.loss == "auto" else losses.get(self.loss)
        allowed = self.method.max_memory
        with waiting(f"Reading {self.file} ...", quiet):
            X = opened(load(self.file, self.table, max_memory=allowed), allowed)
            exposure = self.per.found(self.file, self.table, X)
            X = self.names.on_modes(said_of(X, exposure))
        signals.heed()
        chosen = choose_loss(X) if known is None else as_chosen(X, known)
        refuse_values(X, chosen.loss, self.table.value)
        selected = None
        rank = self.rank
        if rank is None:
            data = as_selected(X, exposure, chosen.loss)
            selected = found_rank(data, chosen.loss, self.method.parameters(), quiet)
            rank = int(selected["rank"])
            self.names.check_rank(rank)
        say(f"Fitting {described(X)}, {counted(rank)}, loss {chosen.loss} ...", quiet)
        for line in needs(X, rank, chosen.loss):
            say(line, quiet)
        new = not self.folder.path.exists()
        saving: dict[str, Any] = {"resume": resume}
        try:
            self.folder.claim(resume, rank * sum(X.shape))
            if checkpoint_every > 0 or resume:
                saving["checkpoint"] = self.folder.checkpoint
                saving["checkpoint_every"] = checkpoint_every or NEVER
            result = fitting.fit(
                X,
                rank,
                chosen.loss,
                progress=False if quiet else "auto",
                callback=signals.heed,
                exposure=exposure,
                **self.method.parameters(),
                **saving,
            )
        except KeyboardInterrupt:
            if not self.folder.resumable:
                self._leave_nothing(new)
            raise KeyboardInterrupt(self._how_to_go_on()) from None
        except BaseException:
            if not resume:
                self._leave_nothing(new)
            raise
        if result.status.interrupted and self.folder.complete and self.folder.resumable:
            raise KeyboardInterrupt(
                f"Interrupted: the run that was in {self.folder.path} before is still there, and "
                "--resume goes on with the new one."
            )
        try:
            with waiting("Writing the report ...", quiet):
                run = self._saved(result, chosen, X, selected)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._how_to_go_on(found=True)) from None
        except OSError as error:
            if not self.folder.resumable:
                raise
            raise InvalidParameterError(
                f"The results could not be written to {self.folder.path}: "
                f"{error.strerror or error}. The checkpoint is kept: make room, and go on with "
                "--resume."
            ) from error
        if not result.status.interrupted:
            self.folder.checkpoints.drop()
        return run

    def _leave_nothing(self, new: bool) -> None:
        """Remove the checkpoint of a run that has no model, and the folder if it is new."""
        self.folder.abandon()
        if new:
            with suppress(OSError):  # somebody else's files are in it
                self.folder.path.rmdir()

    def _how_to_go_on(self, found: bool = False) -> str:
        """Say how to go on after an interruption; ``found`` says that there was a model to save."""
        if found and self.folder.replaced:
            folder = shlex.quote(str(self.folder.path))
            return (
                f"Interrupted: the model is in {self.folder.path}, and 'smartcpd report {folder}' "
                "writes its report."
            )
        if self.folder.resumable:
            return "Interrupted; --resume goes on from the last checkpoint."
        return ""

    def _saved(self, result: Any, chosen: Any, X: Any, selected: dict[str, Any] | None) -> Any:
        """The run in its folder: the model at once, then what takes time to find out about it."""
        from smartcpd._inference.examination import Examination

        examination = Examination.of(result)
        run = dataclasses.replace(
            self._record(examination, chosen, X),
            names=self.names.components,
            names_in_data={name: what for what, name in self.names.modes.items()},
            selection=selected,
        )
        with self.folder.replacement() as beside:
            with signals.held():
                beside.save_model(run)
            quality, diagnosis = examination.figures()
            if diagnosis is not None:
                diagnosis = diagnosis.reworded(options.in_flags)
            run = dataclasses.replace(
                run, quality=quality, diagnosis=diagnosis, rank=examination.rank
            )
            beside.finish(run)
        return run

    def _record(self, examination: Any, chosen: Any, X: Any) -> Any:
        result, shown, remark = examination.fit, examination.shown, examination.excerpt.remark
        agreed = result.consensus
        asked = {"file": self.file, "rank": result.model.rank, "loss": str(chosen.loss)}
        asked |= self.method.parameters()
        return RunRecord(
            model=shown.model,
            as_read=shown.on_its_own(),
            loss=result.loss,
            history=result.history,
            status=result.status._replace(reason=options.in_flags(result.status.reason)),
            solver=result.solver,
            settings=asked | self.table.chosen() | self.per.chosen(),
            data=source_facts(self.file, X, result),
            dispersion=examination.dispersion(),
            stability=None if agreed is None else agreed.summary.ordered(shown.order.tolist()),
            notes=(
                f"Loss {chosen.reason}.",
                *getattr(X, "notes", ()),
                *([remark] if remark else []),
                *self._remarks(agreed),
            ),
            command=self._command(),
            title=stem(self.file),
        )

    def _remarks(self, agreed: Any) -> tuple[str, ...]:
        """Say how starts could be compared, where they were asked for and cannot be."""
        if self.method.n_init == 1 or self.method.consensus or agreed is not None:
            return ()
        return (
            "Only one start was run to its end; --consensus runs all of them, and says how surely "
            "each component is found.",
        )

    def _command(self) -> str:
        """The command that repeats the run."""
        words = ["smartcpd", "fit", self.file]
        words += [
            *self.table.words(),
            *self.per.words(),
            "--rank",
            "auto" if self.rank is None else str(self.rank),
        ]
        if self.loss != "auto":
            words += ["--loss", self.loss]
        return shlex.join([*words, *self.method.words(), *self.names.words()])


def show_result(run: Any, job: Job, json: bool, quiet: bool) -> None:
    """The components on standard output, the path of the page last."""
    if json:
        print_json(summary(run, job.folder))
    else:
        if not quiet:
            print_run(run)
        stdout().print(Text(f"{'' if quiet else 'Report: '}{job.folder.report}"))
    if run.status.interrupted:
        sys.stdout.flush()
        more = " Go on with --resume." if job.folder.resumable else ""
        say(f"Interrupted: the model found so far is in {job.folder.path}.{more}")
