"""Every piece of the registries, with parameters where it needs some: what contracts run over."""

import numpy as np

from smartcpd import constraints, losses, mirrors, steps

PARAMETERS = {
    "alpha": ["(-1)", "(0)", "(0.5)", "(2)"],
    "beta": ["(-1)", "(0)", "(0.5)", "(1)", "(1.5)", "(2)", "(3)"],
    "huber": ["(0.5)", "(2)"],
    "negative-binomial": ["(0.7)", "(4)"],
    "power": ["(-1)", "(-0.5)", "(1.5)", "(3)"],
}


def with_parameters(registry):
    return [name + p for name in registry.names() for p in PARAMETERS.get(name, [""])]


LOSSES = with_parameters(losses)
DISTRIBUTIONS = [name for name in LOSSES if losses.get(name).knows("simulate")]
"""Losses that say how their data is distributed, as all but a divergence without one do."""
MIRRORS = with_parameters(mirrors)
CONSTRAINTS = with_parameters(constraints)
STEPS = with_parameters(steps)


def simulated(loss, m, rng):
    """Data for a loss: drawn from its own distribution, or from gamma's where it names none."""
    source = loss if loss.knows("simulate") else losses.get("gamma")
    return np.asarray(source.simulate(m, rng), dtype=float)
