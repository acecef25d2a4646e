"""``smartcpd fit``."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from smartcpd._app.cli import fit_options as how
from smartcpd._app.cli import options
from smartcpd._app.cli.codes import INTERRUPTED
from smartcpd._app.cli.console import print_json, say, stdout
from smartcpd._app.cli.inputs import (
    TableOptions,
    described,
    limited,
    load,
    needs,
    source_facts,
    stem,
)
from smartcpd._app.cli.options import pairs, whole_numbers
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
            help="A table (.csv, .tsv, .parquet, also .gz; a folder or a pattern of such files) or "
            "a tensor (.tns, .npy, .npz, .mat, .zarr, .nc, .h5, .parts; 'file.npz::name' for one "
            "of several arrays).",
        ),
    ],
    modes: options.Modes = None,
    value: options.Value = None,
    agg: options.Agg = "auto",
    bin_: options.Bin = None,
    top: options.Top = None,
    rest: options.Rest = "gather",
    where: options.Where = None,
    header: options.Header = None,
    rank: how.Rank = 10,
    loss: how.LossName = "auto",
    constraint: how.ConstraintName = "auto",
    solver: how.SolverName = "auto",
    seed: how.Seed = 0,
    n_init: how.NumberOfStarts = 1,
    consensus: how.Consensus = False,
    max_time: how.MaxTime = None,
    threads: how.Threads = None,
    max_memory: how.MaxMemory = None,
    out: how.Out = None,
    force: how.Force = False,
    resume: how.Resume = False,
    checkpoint_every: how.CheckpointEvery = 30.0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """From a table or a tensor to named components and a page to read.

    The folder gets model.npz and model.json, factors/*.csv and report.html.
    """
    if force and resume:
        raise typer.BadParameter("--force replaces a run and --resume goes on with it; give one.")
    if consensus and n_init == 1:
        raise typer.BadParameter("--consensus compares starts; ask for some, as by --n-init 5.")
    table = TableOptions(
        modes, value, agg, pairs("--bin", bin_), whole_numbers("--top", top), rest, where, header
    )
    method = {
        "constraint": constraint,
        "solver": solver,
        "random_state": seed,
        "n_init": n_init,
        "consensus": consensus or None,
        "max_time": max_time,
        "n_threads": threads,
        "max_memory": max_memory,
    }
    job = Job(file, table, rank, loss, method, out or Path(f"{stem(file)}-smartcpd"))
    run = job.run(force, resume, checkpoint_every, quiet)
    show_result(run, job, json, quiet)
    if run.status.interrupted:
        raise typer.Exit(INTERRUPTED)


class Job:
    """One run of the command, from a file to a folder."""

    def __init__(
        self,
        file: str,
        table: TableOptions,
        rank: int,
        loss: str,
        method: Mapping[str, Any],
        out: Path,
    ) -> None:
        from smartcpd._app.run_folder import RunFolder

        self.file, self.table, self.rank, self.loss = file, table, rank, loss
        self.method = method
        self.folder = RunFolder(out)

    def run(self, force: bool, resume: bool, checkpoint_every: float, quiet: bool) -> Any:
        """Read, fit, save."""
        from smartcpd import losses
        from smartcpd._fitting import fit as fitting
        from smartcpd._problem.loss_choice import as_chosen, choose_loss
        from smartcpd._strategies import registry as solvers

        self.folder.check(force, resume)
        solvers.get(str(self.method["solver"]))
        known = None if self.loss == "auto" else losses.get(self.loss)
        say(f"Reading {self.file} ...", quiet)
        X = self._data()
        chosen = choose_loss(X) if known is None else as_chosen(X, known)
        say(f"Fitting {described(X)}, loss {chosen.loss} ...", quiet)
        for line in needs(X, self.rank, chosen.loss):
            say(line, quiet)
        new = not self.folder.path.exists()
        saving: dict[str, Any] = {"resume": resume}
        if checkpoint_every > 0 or resume:
            saving["checkpoint"] = self.folder.checkpoint
            saving["checkpoint_every"] = checkpoint_every or NEVER
        try:
            self.folder.claim(force, resume, self.rank * sum(X.shape))
            result = fitting.fit(
                X,
                self.rank,
                chosen.loss,
                progress=False if quiet else "auto",
                **{name: value for name, value in self.method.items() if value is not None},
                **saving,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._how_to_go_on()) from None
        except BaseException:
            if new:
                self.folder.abandon()
            raise
        say("Writing the report ...", quiet)
        try:
            run = self._saved(result, X, chosen)
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
            self.folder.drop_checkpoint()
        return run

    def _data(self) -> Any:
        allowed = self.method["max_memory"]
        return limited(load(self.file, self.table, max_memory=allowed), allowed)

    def _how_to_go_on(self, found: bool = False) -> str:
        """Say how to go on after an interruption; ``found`` says that there was a model to save."""
        if found and self.folder.header.exists():
            folder = shlex.quote(str(self.folder.path))
            return (
                f"Interrupted: the model is in {self.folder.path}, and 'smartcpd report {folder}' "
                "writes its report."
            )
        if self.folder.resumable:
            return "Interrupted; --resume goes on from the last checkpoint."
        return ""

    def _saved(self, result: Any, X: Any, chosen: Any) -> Any:
        """The run in its folder: the model at once, then what takes time to find out about it."""
        from smartcpd.quality import measure

        run = self._summed_up(result, X, chosen)
        self.folder.save_model(run)
        quality = measure(run.model, X)
        run = dataclasses.replace(run, quality=quality, diagnosis=self._diagnosis(result, X))
        self.folder.save(run)
        return run

    def _diagnosis(self, result: Any, X: Any) -> Any:
        """Return what may be wrong, with components numbered as they are shown; None for data in
        parts, which the checks do not read.
        """
        from smartcpd import CPModel
        from smartcpd._data.labels import taken_off
        from smartcpd._fitting.shares import readable
        from smartcpd._inference.diagnosis import diagnose
        from smartcpd._inference.excerpt import excerpt
        from smartcpd.partitions import PartitionedTensor

        if isinstance(taken_off(X)[0], PartitionedTensor):
            return None
        model = result.model
        order = readable(model).order
        factors = [A[:, order] for A in model.factors]
        ordered = CPModel(factors, model.weights[order], model.loss_function, model.modes)
        few, seen, _ = excerpt(ordered, X)
        return diagnose(
            few,
            seen,
            constraint=self.method["constraint"],
            status=result.status,
            history=result.history,
            first=1,
        )

    def _summed_up(self, result: Any, X: Any, chosen: Any) -> Any:
        from smartcpd._app.run_folder import Run
        from smartcpd._fitting.shares import readable
        from smartcpd._inference import dispersion
        from smartcpd._inference.excerpt import excerpt

        shown = readable(result.model)
        model = shown.model
        agreed = result.consensus
        _, _, remark = excerpt(model, X)
        given = {name: v for name, v in self.method.items() if v is not None}
        return Run(
            model=model,
            loss=result.loss,
            history=result.history,
            status=result.status,
            solver=result.solver,
            settings={"rank": self.rank, "loss": str(chosen.loss)} | given | self.table.chosen(),
            data=source_facts(self.file, X),
            dispersion=dispersion.estimate(model, X),
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
        if self.method["n_init"] == 1 or self.method["consensus"] or agreed is not None:
            return ()
        return (
            "Only one start was run to its end; --consensus runs all of them, and says how surely "
            "each component is found.",
        )

    def _command(self) -> str:
        """The command that repeats the run."""
        words = ["smartcpd", "fit", self.file]
        words += [*self.table.words(), "--rank", str(self.rank)]
        if self.loss != "auto":
            words += ["--loss", self.loss]
        flags = {"random_state": "--seed", "n_threads": "--threads"}
        usual = {"constraint": "auto", "solver": "auto", "random_state": 0, "n_init": 1}
        for name, value in self.method.items():
            if value is True:
                words.append(f"--{name}")
            elif value is not None and value != usual.get(name):
                words += [flags.get(name, "--" + name.replace("_", "-")), str(value)]
        return shlex.join(words)


def show_result(run: Any, job: Job, json: bool, quiet: bool) -> None:
    """The components on standard output, the path of the page last."""
    from smartcpd._app.cli.show import print_run, summary

    if json:
        print_json(summary(run, job.folder))
    else:
        if not quiet:
            print_run(run)
        stdout().print(Text(f"Report: {job.folder.report}"))
    if run.status.interrupted:
        sys.stdout.flush()
        more = " Go on with --resume." if job.folder.resumable else ""
        say(f"Interrupted: the model found so far is in {job.folder.path}.{more}")
