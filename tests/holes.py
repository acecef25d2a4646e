"""Data with missing cells and weights, and what it adds up to in plain NumPy."""

import numpy as np
import pytest

from smartcpd import SparseTensor, datasets

COUNTS, TRUTH = datasets.count((16, 14, 12), 2, a_max=1.5, random_state=0)
SEEN = np.random.default_rng(1).random(COUNTS.shape) >= 0.3


def weights_like(X, seed=2):
    """A third of the cells missing, the others with weights that differ."""
    return np.random.default_rng(seed).choice([0.0, 0.5, 2.0], X.shape)


def spoilt(X, w, value=np.nan):
    """Nonsense wherever nothing was observed."""
    return np.where(w == 0, value, X.astype(float))


def model_of(factors):
    letters = "abcd"[: len(factors)]
    return np.einsum(",".join(k + "r" for k in letters) + "->" + letters, *factors)


def gradient_of(D, factors):
    """Derivatives of all cells, taken back to the factors."""
    letters = "abcd"[: len(factors)]
    parts = []
    for n in range(len(factors)):
        others = [k for k in range(len(factors)) if k != n]
        formula = ",".join([letters, *(letters[k] + "r" for k in others)])
        parts.append(np.einsum(f"{formula}->{letters[n]}r", D, *(factors[k] for k in others)))
    return np.concatenate(parts)


def explicit(loss, X, w, factors):
    """The weighted mean loss, cell by cell, and its gradient."""
    m = model_of(factors)
    x = np.where(w == 0, 1.0, X)
    values, derivatives = np.empty(m.size), np.empty(m.size)
    loss.values_block("float64")(x.reshape(-1), m.reshape(-1), loss.params, values)
    loss.derivative_block("float64")(x.reshape(-1), m.reshape(-1), loss.params, derivatives)
    D = w * derivatives.reshape(m.shape)
    return values @ w.reshape(-1) / w.sum(), gradient_of(D, factors) / w.sum()


def sparse_of(X, w, absent):
    """The same observations as sparse data."""
    if absent == "unobserved":
        stored = w != 0
        return SparseTensor(np.nonzero(stored), X[stored], X.shape, absent, w[stored])
    stored = ((X != 0) | (w != 1)) & (w != 0)
    missing = np.argwhere(w == 0)
    return SparseTensor(np.nonzero(stored), X[stored], X.shape, absent, w[stored], missing)


def agrees(objective, expected, A):
    value, gradient = objective.gradient(A)
    assert value == pytest.approx(expected[0], rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-10)
    assert objective.estimate(A).loss == pytest.approx(expected[0], rel=1e-10, abs=1e-12)
