"""Default fits of little data under constraints on whole columns end where nothing is left."""

import numpy as np
import pieces
import pytest

from smartcpd import constraints, datasets
from smartcpd._common.stacked import stack
from smartcpd._fitting.fit import fit
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.bounds import are_bounds
from smartcpd._strategies.constrained import constrained
from smartcpd.errors import SmartCPDError

COLUMNS = [name for name in pieces.CONSTRAINTS if "+" not in name]
DATA = {
    "gaussian": np.abs(datasets.gaussian((6, 5, 4), 2, random_state=3).data),
    "gamma": datasets.gamma((6, 5, 4), 2, random_state=3).data,
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", DATA)
@pytest.mark.parametrize("constraint", COLUMNS)
def test_what_says_converged_has_nothing_left_to_gain(constraint, loss):
    # A penalty on one mode alone has no minimum: the others take over its scale.
    where = constraint if constraints.get(constraint).penalises else {0: constraint}
    asked = {"rank": 2, "loss": loss, "constraint": where, "progress": False}
    try:
        found = fit(DATA[loss], random_state=1, max_epochs=2000, **asked)
    except SmartCPDError:
        pytest.skip("a combination that is refused")
    if are_bounds(found.problem) or found.solver == "simplex" or not found.status.converged:
        return
    assert found.solver in (constrained.name, "lbfgs")
    on = fit(
        DATA[loss],
        random_state=1,
        init=found.model,
        tol=0.0,
        max_epochs=600,
        solver="smd",
        **asked,
    )
    ended, later = (
        each.loss + each.problem.penalty(each.model.distribute().factors) for each in (found, on)
    )
    resolution = CellSample(found.problem).resolution(stack(found.model.distribute().factors))
    assert ended - later <= 0.1 * resolution + 1e-9 * abs(ended)
