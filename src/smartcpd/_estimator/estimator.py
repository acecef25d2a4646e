"""The scikit-learn estimator: parameters in, ``*_`` attributes out."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._data.storage.weights import slice_weights
from smartcpd._estimator.judging import MeetsNewData
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.fit import fit
from smartcpd._fitting.found import Report
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.settings import CHECKPOINT_EVERY, MAX_EPOCHS, TOL
from smartcpd._fitting.warning import warn_of
from smartcpd._inference.glimpse import deviance_explained
from smartcpd._methods.base import Method
from smartcpd._problem.history import History, Status
from smartcpd._strategies.base import Strategy
from smartcpd.errors import IncompatibleError


class SmartCPD(MeetsNewData):
    """Low-rank CP decomposition with the loss that fits the data.

    Parameters
    ----------
    rank : int
        Number of components.
    loss : str or Loss
        How the data was made. "auto", the default, chooses by the values, as
        `smartcpd.choose_loss` explains, and says why in ``status_``: "poisson" for counts,
        "bernoulli-odds" for yes/no data, "gamma" for positive numbers, "gaussian" for others.
        Others to choose yourself: "bernoulli-logit", "beta(b)", "poisson-log", "rayleigh",
        "negative-binomial(r)" ("auto" for r finds it), "huber(delta)", or one of your own from
        `smartcpd.losses.custom`.
    mirror : str, Mirror, or one a mode
        Geometry of the steps: "quadratic", "entropy", "burg", "power(c)"; "auto" picks it from the
        loss. As for ``constraint``, a list gives one choice a mode, and a dict such as
        ``{0: "entropy"}`` chooses for some modes only.
    constraint : str, Constraint, or one a mode
        "free", "nonnegative", "box(lo, hi)", "simplex", "l1-ball(radius)", "l2-ball(radius)",
        "sparsity(weight)", "smoothness(weight)", "ridge(weight)", "monotone", "unimodal"; sums of
        penalties such as "smoothness(0.1) + sparsity(0.01)"; "auto" is nonnegative where the loss
        needs it and free elsewhere. `smartcpd.constraints.box` takes arrays, for
        bounds that every entry has for itself.
    fixed : dict from modes to (I_n x rank) arrays, optional
        Factors that are known, such as reference spectra, by number or name of the mode; the others
        are fitted.
    fixed_components : CPModel or list of arrays, optional
        Components that are known in all modes, such as a baseline; they become the first of the
        model, and the others are fitted.
    same : list of groups of modes, optional
        Modes that share one factor, by number or name, such as ``[(0, 1)]`` for the senders and
        receivers of a network. They must be of one length; the data need not be symmetric, but the
        model is.
    step : str or Step
        "constant(eta)", "diminishing(eta, decay)", "adagrad", "jensen", "mixed"; "auto" picks it
        from the loss.
    solver : str, Strategy or Method
        "auto" chooses, as the guide explains. A strategy goes from the data to a model, and makes
        starts of its own: "dense" (a compressed tensor, a quasi-Newton finish, a second look),
        "subsampled" (dense data of which full passes are costly), "few-events" (dense but nearly
        empty), "simplex" (dense, with columns on the simplex), "sparse" (counts or events),
        "completion" (sparse, of which other cells are unknown), "tiled" and "partitioned" (dense
        and sparse data larger than ``max_memory``). A method improves one start, yours or a random
        one: "smd" stochastic mirror descent, the paper's method, with the special cases "brascpd"
        and "adacpd" (gaussian); by full passes "mm" multiplicative updates of nonnegative factors
        (poisson and bernoulli-odds, with simplex factors too; gaussian for data >= 0; for dense
        data also gamma and beta(b)), "md" block mirror descent and "row-newton" alternating Newton
        steps of all rows (any loss and constraint), "als" and "hals" alternating least squares
        (gaussian), "ao-admm" (gaussian; dense data under convex losses), "lbfgs" L-BFGS-B,
        "ggn" generalised Gauss-Newton, "quasi-newton" (dense data); by samples "growing-samples"
        (dense), "tile-descents" (arrays on disk), "gcp-adam" (Kolda and Hong). A method that has
        settings of its own, such as ``smartcpd.solvers.GCPAdam(rate=1e-2).solver()``, is taken as
        it is. With ``init=`` a strategy leaves out its search and goes on from there.
    sampler : str or Sampler
        What a stochastic iteration reads: "uniform" fibers, the paper's; for sparse data also
        "nonzeros" (or "nonzeros(batch)") one by one, and all nonzeros of "nonempty" fibers, both
        with the zeros in closed form. "auto" is "nonzeros" for sparse data and "uniform" for dense.
    absent : {"zero", "unobserved"}
        What a cell means that sparse data does not store: that nothing happened there, or that
        nobody looked. A `SparseTensor` that says "unobserved" itself is taken at its word.
    n_fibers : int, optional
        Fibers an iteration samples; twice the rank by default. Of sparse data with closed forms,
        only what those leave out is sampled, if anything.
    inner_iterations : int
        Updates of a mode before the next is drawn, all with the same fibers unless
        ``fresh_fibers``.
    fresh_fibers : bool
        Draw fibers anew for each inner iteration.
    averaging : bool
        Return an average over the last part of the run instead of the last factors, which removes
        most of the noise of sampling.
    overcomplete : float
        A random start has this many times ``rank`` components, and those that prove superfluous
        are merged after a few epochs: it saves most runs from ending with a component wasted. With
        1 (and ``averaging=False``) "smd" is the paper's Algorithm 1 and nothing else; strategies
        have widths of their own.
    max_epochs : int
        An epoch of "smd" samples as many entries as the tensor has (and makes at least 100
        iterations); one of a solver that makes full passes is a step.
    max_time : float, optional
        Seconds after which each start stops, compilation not counted.
    tol : float
        How much of the loss's statistical uncertainty the last part of a fit may still change:
        this share in the second half of the epochs of "smd", correspondingly less in the last steps
        of other solvers; 0 never stops for this reason.
    kkt_tol : float
        Stop when the relative KKT residual falls below this; 0, the default, never computes it. It
        is the change of a factor by a projected gradient step, relative to the factor: a single
        value that is far above all others makes it small before the others are fitted.
    change_tol : float
        Stop when an epoch changes the loss by less than this share of it, as the paper does on real
        data (1e-3); 0, the default, never does. It holds for solvers that `tol` judges, and says
        nothing of how far the optimum is.
    init : "random", "als", "smd", CPModel, CPTensor, ktensor or list of arrays
        Where to start: at random, after some sweeps of clipped least squares, or after a short
        stochastic run. The user's factors are copied. A model may have another rank: components
        are merged, or small random ones added. Components stay in the order of such a start.
    n_init : int
        Number of starts that are compared by loss; those that fall behind are stopped early.
    effort : float
        How much a fit that searches for starts itself may spend on runs that find the solution
        again, or a better one: twice as much with 2, a single run with 0, whose rows need not be
        exact.
    consensus : bool
        Run every start to its end, as a fit of its own, so that ``consensus_`` tells in how many of
        them each component was found. Takes as long as ``n_init`` fits; needs at least two.
    n_jobs : int
        Starts that run at the same time, -1 for as many as there are cores. The result does not
        depend on it.
    n_threads : int, optional
        Threads for a fit, all by default. The result does not depend on it.
    max_memory : str or int, optional
        What data may take in memory before it is read in parts, such as "4GB"; half of the memory
        by default.
    random_state : int, Generator, RandomState or None
        Seed; the same one gives the same bits.
    dtype : {"float64", "float32"}
        Precision of the sampled iterations. "float32" is nearly twice as fast; losses and averages
        are in float64 either way.
    callback : callable, optional
        Called after each epoch with a report (``report.record``, ``report.model()``); a true answer
        ends the fit.
    progress : bool or "auto"
        Show a progress bar; "auto" does so on a terminal.
    checkpoint : path, optional
        A folder that the state of the fit is written to, so that it can go on after an end of the
        process at any moment.
    checkpoint_every : float
        Seconds between two checkpoints.
    resume : bool
        Go on with the fit whose checkpoint is in that folder, bit for bit as if it had never been
        stopped; begin it where there is none. The data and all parameters but ``max_time``,
        ``n_jobs``, ``n_threads``, ``callback``, ``progress`` and ``client`` must be the same.
    client : distributed.Client or Cluster, optional
        A Dask cluster whose workers hold the data and make passes over it. X is then a partitioned
        folder that all workers can read, or a list of tensors that follow each other along mode 0.

    Attributes
    ----------
    model_ : CPModel
    factors_ : list of (I_n x rank) arrays
    weights_ : array of length rank
    loss_ : float
        Mean loss of the model on the data, over all observed cells.
    deviance_explained_ : float or None
        The share of deviance that the model explains, from all cells or from a sample of 16,384;
        `smartcpd.quality.measure` reads more.
    loss_reason_ : str
        Which loss the values of the data chose, and why; empty where the user chose it.
    history_ : History
        A row an epoch: time, epoch, entries sampled, loss, penalty, phase.
    status_ : Status
        Whether the fit converged and, in a sentence, why it stopped.
    solver_ : str
        The solver that was used; `smartcpd.explain` says why.
    consensus_ : Consensus or None
        With ``n_init`` > 1: the components of all starts that came to their end, matched, and how
        stable each is. A start that was stopped early is not counted, since it might have found
        what it lacks; None if fewer than two came to their end, which ``consensus=True`` prevents.
    past_ : Past
        What `partial_fit` remembers of data that it has seen.
    traffic_ : Traffic or None
        What went to and from the workers of a cluster: rounds, bytes, seconds.
    n_iter_ : int
        The number of epochs that the fit took.
    components_ : array, rank x the shape of a slice of mode 0
        The components without mode 0, made when asked for.
    n_features_in_ : int
        Size of mode 1, for scikit-learn's conventions.
    feature_names_in_ : array of str
        Labels of mode 1, if they are text: the columns of a DataFrame, say.

    Examples
    --------
    >>> from smartcpd import SmartCPD, datasets
    >>> X, truth = datasets.count((30, 30, 30), rank=3, random_state=0)
    >>> est = SmartCPD(rank=3, loss="poisson", random_state=0).fit(X)
    >>> [A.shape for A in est.factors_]
    [(30, 3), (30, 3), (30, 3)]
    """

    model_: CPModel
    factors_: list[np.ndarray]
    weights_: np.ndarray
    loss_: float
    history_: History
    status_: Status
    solver_: str
    consensus_: Consensus | None
    traffic_: Any
    deviance_explained_: float | None
    loss_reason_: str

    def __init__(
        self,
        rank: int = 10,
        loss: Any = "auto",
        *,
        mirror: Any = "auto",
        constraint: Any = "auto",
        fixed: Any = None,
        fixed_components: Any = None,
        same: Any = None,
        step: Any = "auto",
        solver: str | Strategy | Method = "auto",
        sampler: Any = "auto",
        absent: str = "zero",
        n_fibers: int | None = None,
        inner_iterations: int = 1,
        fresh_fibers: bool = False,
        averaging: bool = True,
        overcomplete: float = 1.5,
        max_epochs: int = MAX_EPOCHS,
        max_time: float | None = None,
        tol: float = TOL,
        kkt_tol: float = 0.0,
        change_tol: float = 0.0,
        init: Any = "random",
        n_init: int = 1,
        effort: float = 1.0,
        consensus: bool = False,
        n_jobs: int = 1,
        n_threads: int | None = None,
        max_memory: str | int | None = None,
        random_state: Any = None,
        dtype: str = "float64",
        callback: Callable[[Report], Any] | None = None,
        progress: bool | str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = CHECKPOINT_EVERY,
        resume: bool = False,
        client: Any = None,
    ) -> None:
        self.rank = rank
        self.loss = loss
        self.mirror = mirror
        self.constraint = constraint
        self.fixed = fixed
        self.fixed_components = fixed_components
        self.same = same
        self.step = step
        self.solver = solver
        self.sampler = sampler
        self.absent = absent
        self.n_fibers = n_fibers
        self.inner_iterations = inner_iterations
        self.fresh_fibers = fresh_fibers
        self.averaging = averaging
        self.overcomplete = overcomplete
        self.max_epochs = max_epochs
        self.max_time = max_time
        self.tol = tol
        self.kkt_tol = kkt_tol
        self.change_tol = change_tol
        self.init = init
        self.n_init = n_init
        self.effort = effort
        self.consensus = consensus
        self.n_jobs = n_jobs
        self.n_threads = n_threads
        self.max_memory = max_memory
        self.random_state = random_state
        self.dtype = dtype
        self.callback = callback
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.client = client

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
        weights: Any = None,
        exposure: Any = None,
    ) -> SmartCPD:
        """Fit the model to a tensor.

        Parameters
        ----------
        X : array of order >= 2, DataFrame, SparseTensor or PartitionedTensor
            Cells of a dense array that are NaN, or masked in a masked array, are missing. Of a
            sparse tensor, ``SparseTensor(..., missing=, weights=)`` says so. The index and the
            columns of a DataFrame become labels, as those of an xarray DataArray do.
        y : ignored
        sample_weight : array of length X.shape[0], optional
            How much each slice of mode 0 counts.
        mask : boolean array of the shape of X, optional
            True where a cell was observed. What lies in other cells has no influence at all.
        weights : array, optional
            How much each cell counts: finite, not negative, 0 for a missing one. Of the shape of X,
            or of one that broadcasts to it.
        exposure : array, SparseTensor, or dict from modes to vectors, optional
            How much opportunity cells had: people, hours, days. What is expected of a cell is its
            exposure times the model, which is then one of rates. An array broadcasts to X; a dict
            such as ``{"city": population}`` has a number for each row of a mode; of a sparse
            tensor, cells that it does not store have 0. A cell with 0 was not observed.

        Returns
        -------
        SmartCPD
            Itself, fitted. Rows of a mode of which nothing was observed are 0, and named in
            ``status_``.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            Where the fit ended at ``max_epochs`` or ``max_time``.
        UserWarning
            Once in a program, where the solution is not confirmed by a second run.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> SmartCPD(1, "poisson", random_state=0).fit(X).model_
        CPModel(shape=6x5x4, rank=1, loss=poisson)
        """
        self.__dict__.pop("past_", None)
        weights = slice_weights(sample_weight, weights, X)
        result = fit(
            X, **self.get_params(deep=False), mask=mask, weights=weights, exposure=exposure
        )
        warn_of(result.status, agreed=result.consensus is not None and result.consensus.agree)
        self._keep(result.model, result.loss, result.history, result.status)
        self.deviance_explained_ = deviance_explained(result.met, result.problem.storage)
        self.loss_reason_ = result.problem.loss_reason
        self.solver_ = result.solver
        self.consensus_ = result.consensus
        self.traffic_ = result.traffic
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, mask: Any = None, weights: Any = None, **others: Any
    ) -> Any:
        """Fit the model to a tensor, and return the rows that `transform` finds for its slices.

        Parameters
        ----------
        X, y, mask, weights
            As for `fit`; cells count for the rows as they count for the fit.
        **others
            What else `fit` takes.

        Returns
        -------
        ndarray (slices x rank)
            What `transform` returns.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> SmartCPD(1, "poisson", random_state=0).fit_transform(X).shape
        (6, 1)
        """
        fitted = self.fit(X, y, mask=mask, weights=weights, **others)
        return fitted.transform(X, mask=mask, weights=weights)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        mode: int | str = 0,
        forgetting: float = 1.0,
        mask: Any = None,
        weights: Any = None,
    ) -> SmartCPD:
        """Add new slices of one mode to the fit, without the data that came before.

        The new slices get rows of their own, and the other factors are brought up to date. Of older
        data a quadratic for each of their rows is remembered, in ``past_``; while it is little, it
        is kept, and fitted anew whenever it has doubled. The first call is a `fit`. After a `fit`,
        the expectation of the model stands for the data it was fitted to.

        Parameters
        ----------
        X : array or SparseTensor
            New slices: of the shape of the data, but for the length of the mode that grows. If the
            rows of the model have labels, a LabelledTensor whose labels of that mode are new.
        y : ignored
        mode : int or str
            The mode that grows, by number or name; the same in every call.
        forgetting : float
            In (0, 1]: how much older slices count at each arrival; 1 forgets nothing.
        mask, weights : optional
            As for `fit`.

        Returns
        -------
        SmartCPD
            Itself. ``loss_`` is the mean loss of all slices, each when it came (older ones count
            less where they are forgotten); ``history_`` has a row for each arrival.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
        >>> growing = SmartCPD(1, "poisson", random_state=0).partial_fit(X[:5])
        >>> growing.partial_fit(X[5:]).model_.shape
        (10, 9, 8)
        """
        for name in ("same", "fixed", "fixed_components"):
            if getattr(self, name) is not None:
                raise IncompatibleError(
                    f"partial_fit brings one factor after the other up to date, and would not keep "
                    f"to {name}={getattr(self, name)!r:.60}. Use fit with all slices."
                )
        share = doors.check_forgetting(forgetting)
        how = {
            "constraint": self.constraint,
            "absent": self.absent,
            "mask": mask,
            "weights": weights,
            "n_threads": self.n_threads,
        }
        if not hasattr(self, "model_"):
            self.fit(X, mask=mask, weights=weights)
            self.past_ = doors.past_of(self.model_, X, mode, **how)
            return self
        past, last = getattr(self, "past_", None), self.history_[-1] if self.history_ else None
        grown = doors.arrive(
            self.model_, past, X, mode, share, last=last, refit=self._refit(), **how
        )
        self._keep(grown.model, grown.loss, History([*self.history_, grown.record]), grown.status)
        self.deviance_explained_ = None  # of all slices, which are no longer there
        self.past_ = grown.past
        return self

    def _refit(self) -> Callable[..., Any] | None:
        """Return how all slices so far are fitted while they are few.

        There is no such fit where a start or a checkpoint binds the fit to one tensor.
        """
        fixed = not isinstance(self.init, str) or self.checkpoint is not None
        if fixed or self.client is not None:
            return None
        parameters = {**self.get_params(deep=False), "progress": False}
        return lambda X: fit(X, **parameters)

    def _keep(self, model: CPModel, loss: float, history: History, status: Status) -> None:
        self.model_ = model
        self.factors_ = list(model.factors)
        self.weights_ = model.weights
        self.loss_ = loss
        self.history_ = history
        self.status_ = status
        self.n_features_in_ = model.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if model.modes is not None and model.modes[1].labels.dtype.kind == "U":
            self.feature_names_in_ = model.modes[1].labels.astype(object)
