"""GCP-Adam: Adam on sampled cells (Kolda and Hong, 2020), the baseline of the SmartCPD paper.

The defaults are pyttb's, and so is the gradient, that of the sum over all cells, which Adam's
epsilon is measured against. One of its habits is kept because it helps: the clock of the
bias correction advances by a whole epoch in each iteration, which makes the first few hundred steps
two to three times as long as in Adam as published (``clock=1``). There are two differences: losses
are means by `Objective.watch`, as in every solver, in place of a sample of cells; and an epoch that
fails takes Adam's moments back to where it began, not by one iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from smartcpd._common.prefetching import prefetched
from smartcpd._common.stacked import stack
from smartcpd._data.opening import in_memory
from smartcpd._kernels.adam import WORTH_GROUPS, compiled_iterations
from smartcpd._kernels.lanes import padded
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.loop import Look, Loop
from smartcpd._methods.merging import merged
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate, objective_of
from smartcpd._problem.bounds import bounds, check_bounds
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd.sampling.cells import CellDraws, CellSampler, StratifiedCells, UniformCells

LEG_CELLS = 1 << 18
"""Compiled code returns after about this many cells, so that Ctrl-C and time limits work."""


@dataclass(frozen=True)
class GCPAdam:
    """The parameters of Adam, and the solver they make.

    Parameters
    ----------
    rate : float
        Length of the steps.
    decay : float
        What an epoch that ends with a higher loss multiplies the rate by.
    max_fails : int
        Such epochs are taken back; one more than this ends the fit.
    epoch_iterations : int
        Iterations between looks at the loss.
    n_samples : int, optional
        Cells an iteration reads; of sparse data, nonzeros and as many zeros. By default a hundredth
        of all cells or three thousandths of all nonzeros, but at least 1000 if there are as many.
    sampling : UniformCells, StratifiedCells or None
        By default nonzeros and zeros are drawn apart, unless the data is dense or the user asked
        for sampler="uniform".
    beta_1, beta_2, epsilon : float
        How fast the moments forget, and what keeps steps finite.
    clock : int, optional
        What the bias correction counts for an iteration, by default as many as an epoch has.

    Examples
    --------
    >>> from smartcpd import datasets, decompose, solvers
    >>> X, _ = datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> adam = solvers.GCPAdam(rate=1e-2, epoch_iterations=50).solver("longer steps")
    >>> decompose(X, 1, "poisson", solver=adam, random_state=0)
    CPModel(shape=10x9x8, rank=1, loss=poisson)
    """

    rate: float = 1e-3
    decay: float = 0.1
    max_fails: int = 1
    epoch_iterations: int = 1000
    n_samples: int | None = None
    sampling: type[UniformCells] | type[StratifiedCells] | None = None
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    clock: int | None = None

    def solver(self, name: str = "gcp-adam") -> Method:
        """Return the method with these settings, to be passed as ``solver=``.

        Parameters
        ----------
        name : str
            What messages and ``solver_`` call it.

        Returns
        -------
        Method
        """

        def run(task: Task) -> Result:
            return AdamRun(self, task).solve()

        return Method(name, run, lambda problem: check_bounds(problem, name))

    def sampler(self, problem: Problem) -> CellSampler:
        """Return the sampler of cells that these settings make for a problem.

        Parameters
        ----------
        problem : Problem
            The data, its loss and the sampler that the user asked for.

        Returns
        -------
        CellSampler

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import solvers
        >>> from smartcpd._problem.problem import Problem
        >>> problem = Problem.build(np.ones((4, 5, 6)), 2, "poisson")
        >>> solvers.GCPAdam(n_samples=10).sampler(problem).weights.tolist()[:2]
        [12.0, 12.0]
        """
        default = StratifiedCells if problem.sampler.splits else UniformCells
        storage = in_memory(problem.storage, "Solver 'gcp-adam'")
        return (self.sampling or default).of(storage, self.n_samples)


class Adam:
    """Factors with their moments, and the compiled iterations that move them.

    A has padded rows; the moments, too.
    """

    kept = ("A", "first", "second", "iterations")

    def __init__(self, rule: GCPAdam, problem: Problem, A: np.ndarray, n_threads: int = 1) -> None:
        self.rule = rule
        self.rank = A.shape[1]
        self.A = padded(A)
        self.first, self.second = (padded(np.zeros_like(A)) for _ in range(2))
        self._scratch = padded(np.zeros((3 * A.shape[0], self.rank)), "float32")
        self.iterations = 0
        self._low, self._high = (padded(np.tile(b, self.rank)) for b in bounds(problem))
        self._derivative = problem.loss.derivative_block("float32")
        self._loss_p = problem.loss.params
        self._compiled = {
            groups: compiled_iterations(
                len(problem.shape), self.A.shape[1], groups > 1 and n_threads > 1
            )
            for groups in (1, 2)
        }

    @property
    def factors(self) -> np.ndarray:
        return self.A[:, : self.rank]

    def run(self, draws: CellDraws, weights: np.ndarray, rate: float) -> None:
        """Make one iteration for every ``weights.size`` cells drawn."""
        rule = self.rule
        done, n_iterations = self.iterations, draws.x.size // weights.size
        groups = 2 if weights.size >= WORTH_GROUPS else 1
        # Any order of modes will do that begins with the leading one.
        modes = np.roll(np.arange(len(draws.rows)), -draws.lead)
        self._compiled[groups](
            draws.rows,
            modes,
            draws.x,
            weights.astype(np.float32),
            draws.own_weights,
            self._derivative,
            self._loss_p,
            (rate, rule.beta_1, rule.beta_2, rule.epsilon),
            (rule.clock or rule.epoch_iterations)
            * np.arange(done + 1.0, done + n_iterations + 1.0),
            self._low,
            self._high,
            self.A,
            self.first,
            self.second,
            self._scratch[: (1 + groups) * len(self.A)],
        )
        self.iterations += n_iterations

    def saved(self) -> tuple[int, list[np.ndarray]]:
        """Return the state that `restore` takes back."""
        return self.iterations, [a.copy() for a in (self.A, self.first, self.second)]

    def restore(self, state: tuple[int, list[np.ndarray]]) -> None:
        self.iterations = state[0]
        for array, before in zip((self.A, self.first, self.second), state[1], strict=True):
            array[:] = before


class AdamRun:
    """Epochs of Adam, those that fail taken back."""

    kept = ("rate", "fails", "accepted", "adam")

    def __init__(self, rule: GCPAdam, task: Task) -> None:
        problem, settings = task.problem, task.settings
        self.rule = rule
        self.rng = task.rng
        self.n_threads = settings.n_threads
        self.tracker = Tracker(problem, settings, task.observe, task.rng)
        A = stack(task.start)
        if A.shape[1] > problem.rank:
            A = merged(A, problem)
        objective = objective_of(problem.storage, problem.loss, settings.n_threads)
        # From a stream of its own, so that the fit does not depend on how it is watched.
        self.watch = objective.watch(A, task.rng.spawn(1)[0])
        self.sampler = rule.sampler(problem)
        self.adam = Adam(rule, problem, A, settings.n_threads)
        self.rate, self.fails = rule.rate, 0
        self.accepted = Estimate(math.inf)
        self.tracker.begin_with(A)

    def solve(self) -> Result:
        self.watch(self.adam.factors)
        self.sampler.draw(1, np.random.default_rng(0))
        return self.tracker.follow(self._epochs)

    def _epochs(self) -> Status:
        self.accepted = self.watch(self.adam.factors)
        first = self.tracker.record(*self._row())
        return first or Loop(self.tracker, self).run()

    def look(self) -> Look:
        """An epoch, taken back where the loss is higher after it."""
        before = self.adam.saved()
        self._run_epoch(self.rate)
        now = self.watch(self.adam.factors)
        # Also where it is NaN.
        self._failed = not now.loss <= self.accepted.loss
        if self._failed:
            self.adam.restore(before)
        else:
            self.accepted = now
        row = self._row()
        if self._failed:
            self.fails += 1
            self.rate *= self.rule.decay
        return row

    def move(self) -> Status | None:
        """A status once too many epochs have failed."""
        if self.fails <= self.rule.max_fails:
            return None
        return Status(
            True,
            f"Converged: {self.fails} epochs ended with a higher loss than they began with, the "
            f"last at epoch {self.tracker.epoch}, and were taken back.",
        )

    def _row(self) -> Look:
        return Look(self.adam.factors, self.accepted, f"adam({self.rate:g})")

    def _run_epoch(self, rate: float) -> None:
        for draws in self._draws():
            self.adam.run(draws, self.sampler.weights, rate)
            self.tracker.entries += draws.x.size
            if self.tracker.out_of_time:
                break
        self.tracker.epoch += 1

    def _draws(self) -> Iterator[CellDraws]:
        """Yield the cells of an epoch, in stretches short enough to interrupt.

        A second thread draws those of the next stretch in the meantime, in the same order.
        """
        total, most = self.rule.epoch_iterations, max(1, LEG_CELLS // self.sampler.weights.size)
        stretches = (min(most, total - done) for done in range(0, total, most))

        def draw(n_iterations: int) -> CellDraws:
            return self.sampler.draw(n_iterations, self.rng)

        if self.n_threads == 1:
            return map(draw, stretches)
        return (draws for _, draws in prefetched(stretches, draw))


gcp_adam = GCPAdam().solver()
