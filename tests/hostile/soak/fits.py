"""Fits every case, and judges what comes out.

An answer is an error of ours, or a model: finite, within its constraints, with the loss that it
says, in the time that it was given. One that says "Converged" is run on ten times as long from
where it ended (one in two, to save time), and may not be beaten by more than a fifth of what noise
alone moves the loss by, or a hundredth of a nat in all where a model explains nearly everything.
Where the user chose the method or a penalty, its status says how little the last steps gained,
which is true of slow methods and on plateaus too: those are counted.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from fit_cases import Case, case
from ledger import Ledger

from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._fitting.fit import fit
from smartcpd._fitting.found import Fit
from smartcpd._fitting.other_units import OtherUnits
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._objectives.kkt import relative_kkt_residual
from smartcpd.errors import SmartCPDError
from smartcpd.losses import Dispersion

HANG = 600.0
"""Seconds after which a case is a hang, compilation on a busy machine included."""
LATE = 1.5
"""Seconds by which a fit may exceed its time, on a busy machine."""
RUNS = 4
"""Runs of a fit of which one must be in time."""
LONGER = 2.0
"""Seconds that a longer run may take."""
CHOSEN = {"solver", "mirror", "step", "sampler", "n_fibers", "effort", "kkt_tol"}
"""Choices with which a fit says how little its last steps gained, or how small the residual is that
was asked for, and no more than that."""
NATS = 0.01
"""Gain of the log-likelihood of all cells together that tells nothing of anything."""
MARGIN = 0.2
"""Share of the resolution of the data by which a longer run may be lower."""


def tried(number: int, asked: Case) -> dict[str, Any]:
    """Fit and judge a case: what came out, and what is wrong with it."""
    outcome: dict[str, Any] = {"number": number, "faults": []}
    try:
        limit = asked.parameters["max_time"]
        # A run that compiles takes long, and one that ends early leaves things to compile.
        for _ in range(RUNS):
            found, seconds = _timed(asked)
            if seconds <= limit + LATE:
                break
        else:
            outcome["faults"].append(f"late: {seconds:.1f} s instead of {limit} s")
        outcome["end"] = "converged" if found.status.converged else "ended"
        outcome["faults"] += _faults(asked, found)
        if found.status.converged and not outcome["faults"] and number % 2 == 0:
            outcome |= _longer(asked, found)
    except SmartCPDError as error:
        outcome |= {"end": "refused", "error": type(error).__name__, "said": str(error)[:200]}
        if "\n" in str(error) or not str(error).endswith((".", ")", "]")):
            outcome["faults"].append(f"not a sentence: {error}")
    except BaseException as error:
        outcome |= {"end": "foreign"}
        outcome["faults"].append(f"foreign: {error!r}\n{traceback.format_exc()}")
    return outcome


def _timed(asked: Case) -> tuple[Fit, float]:
    began = time.process_time()
    found = fit(asked.X, **asked.parameters, **asked.more)
    return found, time.process_time() - began


def _faults(asked: Case, found: Fit) -> list[str]:
    """What is wrong with a model by itself."""
    faults = []
    factors = found.model.distribute().factors
    numbers = [*factors, np.array([found.loss]), found.history["loss"], found.history.objective]
    if not all(np.isfinite(values).all() for values in numbers):
        faults.append(f"not finite: {found.status}, loss {found.loss}")
        return faults
    for mode, (constraint, A) in enumerate(zip(found.problem.constraints, factors, strict=True)):
        if constraint.penalises:
            continue
        apart = np.abs(constraint.apply(A) - A).max() / max(np.abs(A).max(), 1e-300)
        if apart > 1e-5:
            faults.append(f"mode {mode} is not within {constraint} by {apart:.2g}")
    if isinstance(found.problem.storage, Dense | SparseTensor):
        own = _own_loss(found)
        largest = np.abs(found.history["loss"]).max()
        allowed = 1e-6 * abs(own) + 1e-9 * largest + 6 * found.loss_error + _rounding(found)
        if not found.problem.storage.typical():  # of nothing but zeros, all of it is rounding
            allowed += 1e-30
        if not abs(own - found.loss) <= allowed + 1e-300:
            faults.append(f"says loss {found.loss!r}, has {own!r}")
    return faults


def _own_loss(found: Fit) -> float:
    """The loss of the model, in the units of the fit: the eps inside losses belongs to those."""
    problem = found.problem
    if problem.unit == 1.0:
        return found.model.loss(problem.storage)
    units = OtherUnits(problem)
    return units.outside(units.inside(found.model).loss(units.storage))


def _rounding(found: Fit) -> float:
    """What rounding moves the loss of a perfect model by, which may be 0: losses of a model twice
    as large show how large their terms are."""
    problem = found.problem
    units = OtherUnits(problem) if problem.unit != 1.0 else None
    model = found.model if units is None else units.inside(found.model)
    storage = problem.storage if units is None else units.storage
    twice = abs(replace(model, weights=2.0 * model.weights).loss(storage))
    return 1e-12 * (twice if units is None else units.factor * twice)


def _resolution(found: Fit) -> float:
    """What noise alone moves the loss by; likewise, since squares of small numbers are 0."""
    problem, model = found.problem, found.model
    factor = 1.0
    if problem.unit != 1.0:
        units = OtherUnits(problem)
        factor, model = units.factor, units.inside(model)
        problem = replace(problem, storage=units.storage, loss=units.loss)
    return factor * CellSample(problem).resolution(stack(model.distribute().factors))


def _longer(asked: Case, found: Fit) -> dict[str, Any]:
    """How a run of ten times the length compares with a fit that says that it converged."""
    problem, faults = found.problem, []
    if not isinstance(problem.storage, Dense | SparseTensor):
        return {}
    factors = found.model.distribute().factors
    A = stack(factors)
    epochs = max(found.history[-1].epoch, 10)
    more: dict[str, Any] = {"init": factors, "tol": 0.0, "kkt_tol": 0.0, "n_init": 1}
    more |= {"max_epochs": 10 * epochs, "max_time": LONGER}
    on = fit(asked.X, **(asked.parameters | more), **asked.more)
    ended = found.loss + problem.penalty(factors)
    gain = ended - (on.loss + problem.penalty(on.model.distribute().factors))
    resolution = _resolution(found)
    allowed = MARGIN * resolution + 1e-5 * abs(ended) + 6 * (found.loss_error + on.loss_error)
    allowed += 1e-9 * abs(found.history[0].loss) + _rounding(found)
    if problem.loss.dispersion is Dispersion.FIXED:
        allowed += NATS / problem.storage.n_observed
    if not problem.storage.typical():  # of nothing but zeros: what losses add to a model of 0
        allowed += 1e-20
    if asked.parameters.get("change_tol") or asked.parameters.get("tol", 0.02) > 0.02:
        allowed = math.inf  # as asked
    early = bool(gain > allowed)
    if early and not problem.penalises and not CHOSEN & asked.parameters.keys():
        faults.append(
            f"false: {found.solver} said {found.status}; a longer run is lower by {gain:.3g}, "
            f"{gain / max(resolution, 1e-300):.2g} of the resolution ({ended:.6g})"
        )
    residual = relative_kkt_residual(problem, A) if found.problem.unit == 1 else 0.0
    share = gain / max(resolution, 1e-300)
    return {"faults": faults, "kkt": residual, "early": early, "gain": share}


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Fit so many cases in a child process; one that crashes or hangs is told, and left out."""
    until = time.monotonic() + seconds
    number = 0
    while number < count and time.monotonic() < until:
        left = [str(each) for each in (seed, number, count - number)]
        command = [sys.executable, "-X", "faulthandler", __file__, *left]
        command.append(str(until - time.monotonic()))
        path = os.pathsep.join([*sys.path[:3], os.environ.get("PYTHONPATH", "")])
        last: dict[str, Any] = {}
        first = number
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": path},
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            for line in process.stdout:
                told = json.loads(line)
                last = _entered(told, last, ledger)
                number = told["number"] + 1
            said = process.stderr.read()
        if process.returncode == 0:
            break
        number = max(number, first + 1)
        ledger.fail(f"number={number - 1} {last.get('case')}", f"the process ended: {said[-3000:]}")


def _entered(told: dict[str, Any], last: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    """Enter a line of a child in the ledger."""
    if "case" in told:
        return told
    ledger.count("fits" if told["end"] != "refused" else "refusals")
    if told["end"] == "converged":
        ledger.count("that converged")
    if "early" in told:
        ledger.count("of those run on ten times as long")
    if told.get("early") and not told["faults"]:
        ledger.count("by a method or penalty of the user's choice that stopped early")
    for fault in told["faults"]:
        ledger.fail(f"number={told['number']} {last['case']}", fault)
    return last


def main(seed: int, first: int, count: int, seconds: float) -> None:
    """Print a line of JSON before each case and one after it."""
    warnings.simplefilter("ignore")
    until = time.monotonic() + seconds
    for number in range(first, first + count):
        if time.monotonic() > until:
            break
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        faulthandler.dump_traceback_later(HANG, exit=True)
        try:
            try:
                asked = case(seed, number, folder)
            except SmartCPDError:  # there are no parts of nothing
                continue
            print(json.dumps({"number": number, "case": str(asked)}), flush=True)
            print(json.dumps(tried(number, asked)), flush=True)
        finally:
            faulthandler.cancel_dump_traceback_later()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), float(sys.argv[4]))
