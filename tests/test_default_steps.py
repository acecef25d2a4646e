"""Adagrad steps as they are by default: under every map they leave the start, whatever the loss."""

from functools import cache

import numpy as np
import pytest
from pieces import DISTRIBUTIONS, LOSSES, MIRRORS

from smartcpd import SparseTensor, losses, mirrors
from smartcpd._fitting.fit import fit
from smartcpd.losses import Data, Dispersion, Domain

RANK = 3
CONTINUOUS = [n for n in LOSSES if losses.get(n).data in (Data.REAL, Data.NONNEGATIVE)]
WITH_ZEROS = [name for name in LOSSES if losses.get(name).allows_zeros]


def blocks(rng):
    """Three blocks on a common ground."""
    factors = []
    for size in (16, 14, 12):
        own = np.arange(size)[:, None] * RANK // size == np.arange(RANK)
        factors.append(0.4 * rng.random((size, RANK)) + own * rng.uniform(0.5, 1.5, (size, RANK)))
    return 2.0 * np.einsum("ir,jr,kr->ijk", *factors)


def uneven(rng):
    """Entries of very different sizes, in modes of very different lengths; 1 in the mean."""
    m = np.einsum("ir,jr,kr->ijk", *(rng.gamma(0.7, size=(n, RANK)) + 0.05 for n in (40, 9, 6)))
    return m / m.mean()


@cache
def planted(name, make=blocks, share=1.0, unit=1.0, seed=0):
    """Data in some unit, and the loss of the model that it came from.

    Losses that name no distribution get gamma data. Of data that has no zeros of its own, all but
    a share of the cells are set to 0.
    """
    loss, rng = losses.get(name), np.random.default_rng(seed)
    m = make(rng)
    source = loss if name in DISTRIBUTIONS else losses.get("gamma")
    noise = {"dispersion": 0.1} if source.dispersion is Dispersion.OPEN else {}
    X = unit * np.asarray(source.simulate(m, rng, **noise), dtype=float)
    m *= unit
    if loss.data in (Data.REAL, Data.NONNEGATIVE):
        X *= rng.random(X.shape) < share
        m *= share
    return X, float(np.mean(loss.values_at(X, m)))


def as_sparse(X):
    return SparseTensor(np.argwhere(X), X[X != 0], X.shape)


def check_gain(name, phi, X, of_truth, epochs=40):
    """A short fit takes half of the way from the start to the loss of the truth, at least; some
    starts fit the noise of sparse data better than the truth does, and have no such way to go. Last
    bits differ between processors and lead sampled steps apart: a fit that stays short of it by
    little may try again from another seed.
    """
    shares = (gained(name, phi, X, of_truth, epochs, seed) for seed in range(2))
    first = next(shares)
    assert first >= 0.5 or (first >= 0.4 and next(shares) >= 0.5)


def gained(name, phi, X, of_truth, epochs, seed):
    """The share of the way to the loss of the truth that a short fit takes; 1 where there is
    none."""
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
        max_epochs=epochs,
        random_state=seed,
    )
    start, reached = result.history[0].loss, result.loss
    assert reached < start
    return (start - reached) / (start - of_truth) if start > of_truth else 1.0


@pytest.mark.parametrize("phi", MIRRORS)
@pytest.mark.parametrize("name", LOSSES)
def test_default_adagrad_takes_half_of_what_is_to_be_gained(name, phi):
    check_gain(name, phi, *planted(name))


@pytest.mark.parametrize("name", LOSSES)
def test_where_entries_are_uneven(name):
    """Steps of the size of a typical entry would take most entries to 0 under this map."""
    check_gain(name, "quadratic", *planted(name, uneven, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("phi", MIRRORS)
@pytest.mark.parametrize("name", WITH_ZEROS)
@pytest.mark.parametrize("make", [blocks, uneven])
def test_default_adagrad_takes_half_of_what_is_to_be_gained_of_sparse_data(make, name, phi):
    X, of_truth = planted(name, make, share=0.4, seed=2 if make is uneven else 0)
    check_gain(name, phi, as_sparse(X), of_truth, epochs=60)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [0.01, 100.0])
@pytest.mark.parametrize("phi", MIRRORS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_in_other_units(name, phi, unit):
    check_gain(name, phi, *planted(name, unit=unit, seed=1))
