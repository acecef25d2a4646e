"""Full batches turn the method into well-known ones, each written here in plain NumPy."""

import numpy as np
import pytest
from full_batch import example, full_step, unfolded

from smartcpd import losses

every_order = pytest.mark.parametrize("order", [2, 3, 4])
every_mode = pytest.mark.parametrize("mode", [0, 1, -1])
ETA = 5.0


def cp_apr(A, X, M, H):
    """The multiplicative update of Chi and Kolda for Poisson counts."""
    return A * ((X / M) @ H) / H.sum(axis=0)


def lee_seung(A, X, M, H):
    return A * (X @ H) / (M @ H)


def itakura_saito(A, X, M, H):
    """Majorisation-minimisation: the square root of the multiplicative update."""
    return A * np.sqrt(((X / M**2) @ H) / ((1 / M) @ H))


def odds(A, X, M, H):
    return A * ((X / M) @ H) / ((1 / (1 + M)) @ H)


def exponentiated_gradient(A, X, M, H):
    return A * np.exp(-ETA * (1 - X / M) @ H / X.size)


def normalised_exponentiated_gradient(A, X, M, H):
    moved = exponentiated_gradient(A, X, M, H)
    return moved / moved.sum(axis=0)


def projected_gradient(A, X, M, H):
    return np.maximum(A - ETA * (M - X) @ H / X.size, 0)


NONNEGATIVE = {"constraint": "nonnegative"}
CONSTANT = {"step": f"constant({ETA})"}
ENTROPY = CONSTANT | {"mirror": "entropy"}
CASES = [
    ("poisson", {"step": "jensen"}, cp_apr),
    ("beta(1)", {"step": "jensen"}, cp_apr),
    ("gaussian", {"step": "jensen", **NONNEGATIVE}, lee_seung),
    ("beta(2)", {"step": "jensen"}, lee_seung),
    ("gamma", {"step": "jensen"}, itakura_saito),
    ("beta(0)", {"step": "jensen"}, itakura_saito),
    ("bernoulli-odds", {"step": "jensen"}, odds),
    ("poisson", ENTROPY, exponentiated_gradient),
    ("poisson", ENTROPY | {"constraint": "simplex"}, normalised_exponentiated_gradient),
    ("gaussian", CONSTANT | {"mirror": "quadratic", **NONNEGATIVE}, projected_gradient),
]


@every_order
@every_mode
@pytest.mark.parametrize(("name", "choices", "reference"), CASES)
def test_one_step(name, choices, reference, order, mode):
    mode = range(order)[mode]
    X, factors = example(losses.get(name), order)
    if reference is lee_seung:
        X = np.abs(X)
    if choices.get("constraint") == "simplex":
        factors = [A / A.sum(axis=0) for A in factors]
        X /= X.mean() / unfolded(X, factors, 0)[1].mean()
    moved = full_step(X, factors, mode, name, **choices)
    expected = reference(factors[mode], *unfolded(X, factors, mode))
    assert not np.allclose(expected, factors[mode], rtol=1e-4)
    np.testing.assert_allclose(moved[mode], expected, rtol=1e-6, atol=1e-12)
    for k in set(range(order)) - {mode}:
        np.testing.assert_array_equal(moved[k], factors[k])


def test_projected_gradient_meets_the_bound():
    X, factors = example(losses.get("gaussian"))
    X[0] = -50.0
    A, *_ = full_step(X, factors, 0, "gaussian", **CONSTANT, **NONNEGATIVE)
    assert (A[0] == 0).all()
    assert (A[1:] > 0).any()


@pytest.mark.parametrize("order", [2, 3])
def test_the_multiplicative_update_keeps_the_total_of_counts(order):
    # CP-APR's update matches the model's total to the data's, whatever the start.
    X, factors = example(losses.get("poisson"), order)
    moved = full_step(X, factors, 0, "poisson", step="jensen")
    _, M, _ = unfolded(X, moved, 0)
    assert M.sum() == pytest.approx(X.sum(), rel=1e-7)


def test_a_long_step_on_the_simplex_is_still_the_exponentiated_gradient():
    # What all entries of a column gain in common must not matter, however much it is.
    X, factors = example(losses.get("poisson"))
    factors = [A / A.sum(axis=0) for A in factors]
    A, *_ = full_step(X, factors, 0, "poisson", **ENTROPY, constraint="simplex")
    expected = normalised_exponentiated_gradient(factors[0], *unfolded(X, factors, 0))
    np.testing.assert_allclose(A, expected, rtol=1e-6, atol=1e-9)
