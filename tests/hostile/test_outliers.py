"""A few values far above all others do not lead a default fit astray."""

import numpy as np
import pytest

from smartcpd._fitting.fit import fit


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_default_fit_finds_what_is_there(seed):
    """Least squares under two names have the same minimum, up to a constant in x."""
    X = np.random.default_rng(seed).gamma(0.01, 1.0, size=(12, 10, 4))
    asked = {"rank": 1, "random_state": 0, "progress": False, "constraint": "nonnegative"}
    found, squares = (fit(X, loss=loss, **asked) for loss in ("beta(2)", "gaussian"))
    assert found.status.converged
    assert found.loss < 0.9 * (squares.loss - 0.5 * np.mean(X**2))
