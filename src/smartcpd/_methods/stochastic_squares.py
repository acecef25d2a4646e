"""BrasCPD and AdaCPD (Fu, Ibrahim, Wai, Gao and Huang): what `smd` is under least squares.

With the quadratic map a mirror step is a gradient step, completed by the constraint's proximal map.
BrasCPD's steps are constant, or shrink on a schedule; those of AdaCPD shrink by the gradients that
were seen. Neither begins with more components than asked for, and neither averages.
"""

from __future__ import annotations

from functools import partial

from smartcpd._methods.base import Method
from smartcpd._methods.least_squares import check_loss
from smartcpd._methods.smd import smd
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError


def check(problem: Problem, name: str, steps: tuple[str, ...]) -> None:
    """Refuse what would not be the method of this name: other losses, maps and step rules."""
    check_loss(problem, name)
    for phase in problem.phases:
        if phase.step.name not in steps:
            raise IncompatibleError(
                f"Solver '{name}' takes steps {' or '.join(map(repr, steps))}; got step "
                f"'{phase.step}'. Use solver='smd', or leave step out."
            )
        for mode, mirror in enumerate(phase.mirrors):
            if mirror.name != "quadratic":
                raise IncompatibleError(
                    f"Solver '{name}' takes gradient steps, mirror 'quadratic'; got mirror "
                    f"'{mirror}' for mode {mode}. Use solver='smd', or leave mirror out."
                )


def named(name: str, *steps: str) -> Method:
    """`smd` with the quadratic map and one of these step rules, by default the first."""
    usual = {
        "loss": "gaussian",
        "mirror": "quadratic",
        "step": steps[0],
        "averaging": False,
        "overcomplete": 1.0,
    }
    return Method(name, smd.run, partial(check, name=name, steps=steps), defaults=usual)


brascpd = named("brascpd", "constant", "diminishing")
adacpd = named("adacpd", "adagrad")
