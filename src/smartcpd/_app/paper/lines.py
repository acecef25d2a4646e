"""The solvers that race, each by name twice: as published and tuned.

*As published* is what the paper states: every solver from the same random start A_max U(0, 1), with
the authors' settings, and the factors that it has in the end. *Tuned* is the best that we can make
of it: this package's defaults, and for GCP-OPT a learning rate that was searched for.
"""

from __future__ import annotations

from typing import Any

from smartcpd._app.paper.contenders import Contender, Task
from smartcpd._app.paper.watching import NO_END, ours
from smartcpd._methods.gcp_adam import GCPAdam

PUBLISHED, TUNED = "as published", "tuned"
AUTO = "auto (our default)"
LIMIT = "limit (from the truth)"
TOOLBOX_RATE = 1e-3
"""The learning rate of the Tensor Toolbox's GCP-OPT, which the paper does not change."""
WHOLE_FIT = 60.0
"""Seconds to warm up a solver whose last stages are reached only by a fit that is not cut short."""


def published(name: str) -> str:
    """Return the name of a solver that runs as the paper set it up."""
    return f"{name}, {PUBLISHED}"


def tuned(name: str) -> str:
    """Return the name of a solver that runs as well as we can make it."""
    return f"{name}, {TUNED}"


def _from_the_papers_start(task: Task) -> dict[str, Any]:
    """Return the parameters that all solvers as published share: one start, nothing merged, and no
    end but that of the budget.
    """
    return {"init": task.start, "overcomplete": 1, "max_epochs": NO_END, "tol": 0}


def algorithm_1(name: str, stop: float = 0.0, **choices: Any) -> Contender:
    """Make a contender of the paper's Algorithm 1 alone, returning its last factors."""
    given = {"mirror": "entropy", "step": "adagrad(1, 1e-5)", **choices}

    def parameters(task: Task) -> dict[str, Any]:
        plain = {"solver": "smd", "averaging": False, "sampler": "uniform"}
        return {**_from_the_papers_start(task), **plain, "n_fibers": task.n_fibers, **given}

    words = ", ".join(f"{key} {value}" for key, value in given.items())
    until = f", until a look changes the loss by less than {stop:g} of it" if stop else ""
    settings = f"the paper's Algorithm 1, uniform fibers, {words}, last factors{until}"
    return ours(name, settings, parameters, last=True, stop=stop, samples=True)


def smartcpd_published(stop: float = 0.0, **choices: Any) -> Contender:
    return algorithm_1(published("SmartCPD"), stop, **choices)


def smartcpd_tuned() -> Contender:
    return ours(
        tuned("SmartCPD"),
        "solver smd with this package's defaults: a start on the scale of the data with 1.5 R "
        "components, merged after a few epochs, a second look for missed ones, adagrad scaled to "
        "the first gradients, tail averages; of sparse data the nonzeros, with the zeros in closed "
        "form",
        lambda task: {"solver": "smd", "n_fibers": task.n_fibers},
        samples=True,
    )


def gcp_opt_published(stop: float = 0.0) -> Contender:
    """Make a contender of the toolbox's Adam, as many entries an iteration as SmartCPD reads."""

    def parameters(task: Task) -> dict[str, Any]:
        # Of sparse data, half are nonzeros and half zeros.
        n_samples = task.n_entries if task.is_dense else task.n_entries // 2
        adam = GCPAdam(rate=TOOLBOX_RATE, n_samples=n_samples, clock=1)
        return {**_from_the_papers_start(task), "solver": adam.solver()}

    settings = (
        f"solver gcp-adam, the toolbox's defaults (rate {TOOLBOX_RATE:g}, epochs of 1000 "
        "iterations), as many entries an iteration as SmartCPD reads; of sparse data stratified"
    )
    return ours(published("GCP-OPT"), settings, parameters, stop=stop, samples=True)


def gcp_opt_tuned(rate: float) -> Contender:
    """Make a contender of Adam at its best: of dense data as many entries as the paper's method
    samples, of sparse data the solver's own number, with which it was faster.
    """

    def parameters(task: Task) -> dict[str, Any]:
        n_samples = task.n_entries if task.is_dense else None
        return {"solver": GCPAdam(rate=rate, n_samples=n_samples).solver(), "overcomplete": 1}

    settings = f"solver gcp-adam, rate {rate:g}, the best of a few; a start on the data's scale"
    return ours(tuned("GCP-OPT"), settings, parameters, samples=True)


def ggn_published(stop: float = 0.0) -> Contender:
    settings = "solver ggn: bounded steps by preconditioned conjugate gradients"

    def parameters(task: Task) -> dict[str, Any]:
        return {**_from_the_papers_start(task), "solver": "ggn"}

    return ours(published("GGN"), settings, parameters, stop=stop)


def ggn_tuned() -> Contender:
    settings = "solver ggn, a start on the scale of the data"
    return ours(tuned("GGN"), settings, lambda task: {"solver": "ggn", "overcomplete": 1})


def block_md_published() -> Contender:
    def parameters(task: Task) -> dict[str, Any]:
        return {**_from_the_papers_start(task), "solver": "md"}

    return ours(published("block MD"), "solver md, full gradients, entropy map", parameters)


def block_md_tuned() -> Contender:
    settings = "solver md, full gradients, a start on the scale of the data"
    return ours(tuned("block MD"), settings, lambda task: {"solver": "md", "overcomplete": 1})


def auto() -> Contender:
    return ours(AUTO, "solver auto", warm_up_seconds=WHOLE_FIT)


def from_truth() -> Contender:
    """Make the reference line, the optimum next to the true factors: no method can do better."""
    return ours(
        LIMIT,
        "solver auto, started at the true factors",
        lambda task: {"init": task.truth},
        reference=True,
        warm_up_seconds=WHOLE_FIT,
    )


def all_others(rate: float, *, ggn: bool, stop: float = 0.0) -> tuple[Contender, ...]:
    """Return the lines that race against the paper's method: rivals as published, everybody tuned,
    and this package's default. GGN serves few losses.
    """
    return (
        gcp_opt_published(stop),
        *((ggn_published(stop),) if ggn else ()),
        smartcpd_tuned(),
        gcp_opt_tuned(rate),
        *((ggn_tuned(),) if ggn else ()),
        auto(),
    )
