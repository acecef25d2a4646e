"""The probability of a solution: not only how low its loss is, but how much room there is around
it.

Where a model has many parts for the data at hand, its loss has many minima of nearly the same
depth, and which of them is the lowest is a matter of noise. The probability that the data gives to
the surroundings of a minimum is less so: a narrow one is low by fitting noise. By Laplace's method
it is the likelihood at the minimum times the volume over which that holds; here the volume is the
product of those of all rows, each for the others as they are.
"""

from __future__ import annotations

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._data.storage import Storage
from smartcpd._methods.quasi_newton import Region
from smartcpd._methods.row_newton import all_positive
from smartcpd._objectives.slices.dense import DenseSlices
from smartcpd._objectives.slices.sums import slices_of

HELD = 1e-3
"""An entry this close to a bound, relative to its standard error, is held by it if the slope says
so too.
"""


def log_evidence(
    storage: Storage, A: np.ndarray, region: Region, dispersion: float, n_threads: int
) -> float:
    """The logarithm of the probability around stacked factors, up to what all models share.

    Columns of any kind are equally probable beforehand, whatever their size: entries are measured
    in units of their column's sum, and are not thought to be larger than that. ``dispersion`` is
    how much wider than its loss says the data scatters. It is -inf where the loss does not bend
    upwards, as some of the users' own do.
    """
    factors = [np.ascontiguousarray(F, dtype=np.float64) for F in parts(A, region.shape)]
    ends = zip(parts(region.low, region.shape), parts(region.high, region.shape), strict=True)
    total = 0.0
    for mode, (F, (lowest, highest)) in enumerate(zip(factors, ends, strict=True)):
        slices = slices_of(storage, region.loss, factors, mode, n_threads)
        assert isinstance(slices, DenseSlices)
        sums = slices.at(F)
        sizes = np.abs(F).sum(axis=0)
        sizes[sizes == 0] = 1.0
        slope = sums.slope * sizes / dispersion
        bend = slices.expected_bends(F) * np.outer(sizes, sizes) / dispersion
        bend += np.eye(len(sizes))
        if not all_positive(bend):
            return -np.inf
        total += _log_volume(slope, bend, (F - lowest) / sizes, (highest - F) / sizes)
        if mode == 0:
            total -= float(sums.value.sum()) / dispersion
    return total


def _log_volume(slope: np.ndarray, bend: np.ndarray, above: np.ndarray, below: np.ndarray) -> float:
    """Return the log-volume of the rows of a factor, from the gradient and the Hessian of each;
    entries may go down by ``above`` and up by ``below``.
    """
    from scipy.special import erfcx, log_ndtr

    own = np.einsum("jrr->jr", bend)
    near = HELD / np.sqrt(own)
    held = ((above < near) & (slope > 0)) | ((below < near) & (slope < 0))
    # An entry at its bound can only leave it uphill.
    z = np.abs(slope[held]) / np.sqrt(2.0 * own[held])
    volume = np.log(np.sqrt(0.5 * np.pi / own[held]) * erfcx(z)).sum()
    free = ~held
    B = np.where(free[:, :, None] & free[:, None, :], bend, np.eye(bend.shape[1]))
    volume += 0.5 * np.log(2.0 * np.pi) * free.sum() - 0.5 * np.linalg.slogdet(B)[1].sum()
    # An entry near a bound loses what lies beyond it.
    try:
        inverse = np.linalg.inv(B)
    except np.linalg.LinAlgError:  # flat to rounding, so that nothing is known of its volume
        return -np.inf
    spread = np.sqrt(np.einsum("jrr->jr", inverse))[free]
    volume += log_ndtr(above[free] / spread).sum() + log_ndtr(below[free] / spread).sum()
    return float(volume)
