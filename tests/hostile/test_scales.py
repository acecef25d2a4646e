"""Data in other units has the same fit in those units, or is refused by name."""

import numpy as np
import pieces
import pytest

from smartcpd import SparseTensor, losses
from smartcpd._fitting.explaining import explain
from smartcpd._fitting.fit import fit
from smartcpd._fitting.other_units import OtherUnits
from smartcpd._problem.problem import Problem
from smartcpd.errors import InvalidDataError
from smartcpd.losses.base import Data

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


def test_a_smaller_model_to_begin_with():
    """In other units, too, components are added to it."""
    small = fit(X * SMALL, 1, random_state=0, progress=False).model
    found = fitted(X * SMALL, init=small)
    assert relative_error(found.model, X * SMALL, SMALL) < 0.5 * relative_error(
        small, X * SMALL, SMALL
    )


@pytest.mark.parametrize("name", pieces.LOSSES)
def test_what_losses_say_of_units(name):
    """l(s x, s m) is s^p l'(x, m) and a shift that does not depend on m."""
    loss = losses.get(name)
    if loss.homogeneity is None:
        assert loss.data in (Data.BINARY, Data.COUNTS)
        return
    x, m, n = rng.random((3, 50)) + 0.5
    for unit in (8.0, 1e4):
        same, shift = loss.in_units(unit), loss.unit_shift(unit, x.mean())
        for model in (m, n):
            found = loss.values_at(unit * x, unit * model).mean()
            scaled = unit**loss.homogeneity * same.values_at(x, model).mean() + shift
            assert found == pytest.approx(scaled, rel=1e-6)


@pytest.mark.parametrize(
    "loss",
    ["poisson", "gamma", "rayleigh", "beta(0.5)", "beta(1)", "beta(3)", "alpha(0.5)", "alpha(2)"],
)
def test_large_positive_data(loss):
    counts = np.abs(X) + 0.1
    usual = fitted(counts * 2.0**20, loss=loss)
    large = [fitted(counts * 2.0**power, loss=loss) for power in (80, 320)]
    for found, power in zip(large, (80, 320), strict=True):
        apart = np.ldexp(found.model.full(), 20 - power) - usual.model.full()
        assert np.linalg.norm(apart) < 0.02 * np.linalg.norm(usual.model.full())
        assert found.loss == pytest.approx(found.model.loss(counts * 2.0**power), rel=1e-9)
        assert found.model.loss_function == losses.get(loss)
    assert np.array_equal(np.ldexp(large[0].model.full(), 240), large[1].model.full())


def test_a_width_is_in_the_units_of_the_data():
    usual = fitted(X, loss="huber(0.25)", solver="lbfgs")
    for unit in (SMALL, LARGE):
        found = fitted(X * unit, loss=losses.Huber(0.25 * unit), solver="lbfgs")
        apart = found.model.full() / unit - usual.model.full()
        assert np.linalg.norm(apart) < 0.02 * np.linalg.norm(X)
        assert found.model.loss_function == losses.Huber(0.25 * unit)
        assert found.loss / unit**2 == pytest.approx(usual.loss, rel=0.01)


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
        ("gamma", 1e-25, {}),
        ("poisson-log", 1e100, {}),
        ("negative-binomial(2)", 1e25, {}),
        ("beta(3)", 1e120, {}),
        ("gaussian", 1e25, {"constraint": "sparsity(0.1)"}),
        ("gaussian", 1e160, {}),
        ("gaussian", 1e-160, {}),
    ],
)
def test_what_has_no_other_units_is_refused(loss, unit, more):
    with pytest.raises(InvalidDataError, match=r"Measure (X|it) in (other|smaller) units"):
        explain(np.abs(X) * unit, 2, loss, **more)


def test_very_sparse_data_is_not_small():
    cells = np.array([[0] * 5, [10**4 - 1] * 5])
    assert "rank 1" in explain(SparseTensor(cells, [1, 2], (10**4,) * 5), 1, "poisson")


def test_a_loss_beyond_the_range_of_numbers_is_the_largest_of_them():
    units = OtherUnits(Problem.build(np.abs(X) * 2.0**322, 2, "beta(3)"))
    assert np.isfinite([units.outside(loss) for loss in (1e100, -1e100, 1.0)]).all()
