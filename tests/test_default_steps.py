"""Adagrad steps as they are by default: under every map they leave the start, whatever the loss."""

from functools import cache

import numpy as np
import pytest
from pieces import DISTRIBUTIONS, LOSSES, MIRRORS

from smartcpd import SparseTensor, losses, mirrors
from smartcpd._fitting.fit import fit
from smartcpd.losses import Data, Dispersion, Domain

SHAPE, RANK = (16, 14, 12), 3
WITH_ZEROS = [name for name in LOSSES if losses.get(name).allows_zeros]


@cache
def planted(name, share=1.0):
    """Data of three blocks on a common ground, and the loss of the model that it came from.

    Losses that name no distribution get gamma data. Of data that has no zeros of its own, all but
    a share of the cells are set to 0.
    """
    loss, rng = losses.get(name), np.random.default_rng(0)
    factors = []
    for size in SHAPE:
        own = np.arange(size)[:, None] * RANK // size == np.arange(RANK)
        factors.append(0.4 * rng.random((size, RANK)) + own * rng.uniform(0.5, 1.5, (size, RANK)))
    m = 2.0 * np.einsum("ir,jr,kr->ijk", *factors)
    source = loss if name in DISTRIBUTIONS else losses.get("gamma")
    noise = {"dispersion": 0.1} if source.dispersion is Dispersion.OPEN else {}
    X = np.asarray(source.simulate(m, rng, **noise), dtype=float)
    if loss.data in (Data.REAL, Data.NONNEGATIVE):
        X *= rng.random(SHAPE) < share
        m *= share
    return X, float(np.mean(loss.values_at(X, m)))


def check_gain(name, phi, X, of_truth):
    """A short fit takes half of the way from the start to the loss of the truth, at least."""
    free = losses.get(name).domain is Domain.REAL and mirrors.get(phi).signed
    result = fit(
        X,
        RANK,
        name,
        mirror=phi,
        constraint="free" if free else "nonnegative",
        step="adagrad",
        solver="smd",
        overcomplete=1,
        max_epochs=40,
        random_state=0,
    )
    start, reached = result.history[0].loss, result.loss
    to_gain = start - of_truth
    assert to_gain > 0
    assert start - reached >= 0.5 * to_gain


@pytest.mark.parametrize("phi", MIRRORS)
@pytest.mark.parametrize("name", LOSSES)
def test_default_adagrad_takes_half_of_what_is_to_be_gained(name, phi):
    check_gain(name, phi, *planted(name))


@pytest.mark.slow
@pytest.mark.parametrize("phi", MIRRORS)
@pytest.mark.parametrize("name", WITH_ZEROS)
def test_default_adagrad_takes_half_of_what_is_to_be_gained_of_sparse_data(name, phi):
    X, of_truth = planted(name, share=0.4)
    check_gain(name, phi, SparseTensor(np.argwhere(X), X[X != 0], X.shape), of_truth)
