"""Data in other units has the same fit in those units, or is refused by name."""

import numpy as np
import pytest

from smartcpd import SparseTensor
from smartcpd._fitting.fit import explain, fit
from smartcpd.errors import InvalidDataError

rng = np.random.default_rng(0)
FACTORS = [rng.normal(size=(n, 2)) for n in (9, 8, 7)]
X = np.einsum("ir,jr,kr->ijk", *FACTORS) + 0.1 * rng.normal(size=(9, 8, 7))
SMALL, LARGE = 2.0**-83, 2.0**332
"""About 1e-25 and 1e100."""


def fitted(X, **more):
    asked = {"random_state": 0, "progress": False, "max_epochs": 40} | more
    return fit(X, 2, **asked)


def relative_error(model, X, unit):
    return np.linalg.norm((model.full() - X) / unit) / np.linalg.norm(X / unit)


@pytest.mark.parametrize("solver", ["auto", "smd", "md", "lbfgs", "gcp-adam"])
def test_the_same_fit_in_other_units(solver):
    usual = relative_error(fitted(X, solver=solver).model, X, 1.0)
    small, large = (fitted(X * unit, solver=solver) for unit in (SMALL, LARGE))
    for found, unit in ((small, SMALL), (large, LARGE)):
        assert relative_error(found.model, X * unit, unit) == pytest.approx(usual, rel=0.02)
        residual = (found.model.full() - X * unit) / unit
        assert found.loss / unit**2 == pytest.approx(0.5 * np.mean(residual**2), rel=1e-9)
        assert "X was divided by" in found.status.reason
    assert np.array_equal(small.model.full() / SMALL, large.model.full() / LARGE)


def test_missing_cells_weights_and_sparse_data():
    holed = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    weights = rng.random(X.shape)
    cells = np.argwhere(np.abs(X) > 1.5)
    values = X[tuple(cells.T)]
    for unit in (SMALL, LARGE):
        found = fitted(holed * unit)
        assert relative_error(found.model, X * unit, unit) < 0.2
        assert fitted(X * unit, weights=weights).status.converged
        sparse = fitted(SparseTensor(cells, values * unit, X.shape, "unobserved"))
        assert np.isfinite(sparse.loss / unit**2)


def test_starts_and_callbacks_are_in_the_units_of_the_data():
    start = [FACTORS[0] * SMALL, *FACTORS[1:]]
    seen = []
    found = fitted(
        X * SMALL, init=start, solver="als", callback=lambda r: seen.append((r.record, r.model()))
    )
    record, model = seen[0]
    assert record.loss == found.history[0].loss
    assert relative_error(model, X * SMALL, SMALL) < 0.2


@pytest.mark.parametrize(
    ("loss", "unit", "more"),
    [
        ("gamma", 1e25, {}),
        ("poisson", 1e100, {}),
        ("huber(0.25)", 1e-25, {}),
        ("gaussian", 1e25, {"constraint": "sparsity(0.1)"}),
        ("gaussian", 1e160, {}),
        ("gaussian", 1e-160, {}),
    ],
)
def test_what_has_no_other_units_is_refused(loss, unit, more):
    with pytest.raises(InvalidDataError, match="Measure X in other units"):
        explain(np.abs(X) * unit, 2, loss, **more)


def test_very_sparse_data_is_not_small():
    cells = np.array([[0] * 5, [10**4 - 1] * 5])
    assert "rank 1" in explain(SparseTensor(cells, [1, 2], (10**4,) * 5), 1, "poisson")
