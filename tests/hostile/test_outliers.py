"""One huge value among small ones does not lead a default fit astray."""

import numpy as np
import pytest

from smartcpd import SmartCPD


@pytest.mark.parametrize("loss", ["beta(2)", "gaussian"])
def test_a_default_fit_finds_what_is_there(loss):
    rng = np.random.default_rng(0)
    X = 0.05 * rng.random((12, 10, 4))
    X[3, 4, 1] = 3.5
    found = SmartCPD(1, loss, constraint="nonnegative", random_state=0).fit(X)
    assert found.status_.converged
    assert found.model_.full()[3, 4, 1] == pytest.approx(3.5, rel=0.02)
