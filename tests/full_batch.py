"""Steps and gradients over all fibers of a mode, and the same in plain NumPy."""

from dataclasses import fields

import numpy as np
from scipy.linalg import khatri_rao

from smartcpd._common import threads
from smartcpd._common.stacked import stack, unstack
from smartcpd._methods.base import Settings
from smartcpd._methods.smd_phase import Sweeper
from smartcpd._problem.problem import Problem
from smartcpd._problem.stopping import Stopping
from smartcpd.losses import Data, Domain
from smartcpd.sampling import Draws


def settings(n_fibers):
    """Settings of bare steps: whatever else a fit may do is off."""
    given = {
        "stopping": Stopping(tol=0.0, kkt_tol=0.0, max_epochs=10, max_time=None),
        "n_fibers": n_fibers,
        "inner_iterations": 1,
        "dtype": "float64",
        "n_threads": 1,
    }
    off = {field.name: False for field in fields(Settings)}
    return Settings(**(off | given))


def all_fibers(shape, mode):
    """Every fiber of a mode once, as indices in all modes."""
    sizes = [1 if k == mode else size for k, size in enumerate(shape)]
    return np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)


def full_step(X, factors, mode, loss, **choices):
    """All factors after one step of a mode on all of its fibers."""
    problem = Problem.build(X, factors[0].shape[1], loss, **choices)
    fibers = all_fibers(X.shape, mode)
    A = stack(factors)
    with threads.limited_to(1):
        sweeper = Sweeper(problem, problem.phases[0], settings(len(fibers)))
        sweeper.start(A, np.random.default_rng(0))
        sweeper.run(Draws.of_fibers(np.array([mode]), fibers[None]), A)
    return unstack(A, X.shape)


def unfolded(X, factors, mode):
    """X, M and H of one mode: fibers as columns of X and M, M = A H^T."""
    others = [A for k, A in enumerate(factors) if k != mode]
    H = others[0]
    for A in others[1:]:
        H = khatri_rao(H, A)
    X_n = np.moveaxis(X, mode, 0).reshape(X.shape[mode], -1)
    return X_n, factors[mode] @ H.T, H


def example(loss, order=3, rank=3, seed=0):
    """Positive factors, and data such as the loss describes; not data of these factors."""
    rng = np.random.default_rng(seed)
    shape = (6, 5, 4, 3)[:order]
    scale = 0.3 if loss.domain is Domain.REAL else 1.0
    factors = [scale * rng.uniform(0.2, 1.2, (size, rank)) for size in shape]
    kind = loss.data
    if kind is Data.REAL:
        X = rng.normal(1.0, 1.0, shape)
    elif kind is Data.NONNEGATIVE:
        X = rng.gamma(2.0, 0.7, shape)
    elif kind is Data.COUNTS:
        X = rng.poisson(2.0, shape).astype(float)
    else:
        # Mostly ones: nonnegative log-odds can only say that yes is likelier than no.
        X = (rng.random(shape) < 0.85).astype(float)
    return X, factors
