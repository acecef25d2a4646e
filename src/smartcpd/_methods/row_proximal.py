"""The minimum of a quadratic of a whole factor within a constraint of any kind.

It is found by accelerated proximal steps, each completed by the constraint's own projection. The
metric is the diagonal that dominates the Hessians, so that every step is safe.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smartcpd.constraints import Constraint

MAX_STEPS = 3000
SMALL = 1e-12
LOOKS = 50
"""Number of steps from one look at the clock to the next."""


def proximal_step(
    G: np.ndarray,
    B: np.ndarray,
    A: np.ndarray,
    constraint: Constraint,
    scale: float,
    D: np.ndarray,
    check_time: Callable[[], object],
) -> float:
    """Leave in D the step from A that minimises <G, D> + <D, B D> / 2 + scale * h(A + D), and
    return by how much it lowers that."""
    Gamma = np.abs(B).sum(axis=2)
    Gamma = np.maximum(Gamma, 1e-12 * Gamma.max() + np.finfo(float).tiny)

    def value(Z: np.ndarray) -> float:
        step = Z - A
        bent = np.einsum("jrs,js->jr", B, step)
        return float(np.vdot(G + 0.5 * bent, step)) + scale * constraint.penalty(Z)

    here, before = A, A
    lowest = first = scale * constraint.penalty(A)
    momentum = 1.0
    size = float(np.abs(A).max()) + np.finfo(float).tiny
    for number in range(MAX_STEPS):
        if number % LOOKS == 0:
            check_time()
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = here + (momentum - 1.0) / following * (here - before)
        slope = G + np.einsum("jrs,js->jr", B, ahead - A)
        # The projection's own weights say how much the loss counts against the penalty.
        reached = constraint.apply(ahead - slope / Gamma, Gamma / scale)
        cost = value(reached)
        if cost > lowest and momentum > 1.0:
            momentum, before = 1.0, here  # the momentum led too far: begin anew from here
            continue
        if cost > lowest:
            break
        change = float(np.abs(reached - here).max())
        before, here, lowest, momentum = here, reached, cost, following
        if change <= SMALL * size:
            break
    D[:] = here - A
    return first - lowest
