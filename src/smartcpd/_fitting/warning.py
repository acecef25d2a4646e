"""What a fit says aloud: that it ended at a limit, or that nothing confirms what it found."""

from __future__ import annotations

import warnings

from smartcpd._common.extras import if_loaded
from smartcpd._problem.history import Status

_told: set[str] = set()


def warn_of(status: Status, agreed: bool = False, stacklevel: int = 3) -> None:
    """Warn of a fit that a limit ended; and once in a program of one that is not confirmed.

    A fit that its user interrupted says nothing, since that is known; nor does one whose several
    starts ``agreed``.
    """
    if status.interrupted:
        return
    if not status.converged:
        kind = if_loaded("sklearn.exceptions", "ConvergenceWarning", ConvergenceWarning)
        warnings.warn(status.reason, kind, stacklevel)
    elif status.found == 1 and not agreed and "not confirmed" not in _told:
        _told.add("not confirmed")
        warnings.warn(
            "Not confirmed: no second run of this fit ended with the same components, so a better "
            "solution may exist. Compare fits with other seeds, or use n_init=5. (status_ says so "
            "of each fit; this is said once.)",
            stacklevel=stacklevel,
        )


class ConvergenceWarning(UserWarning):
    """A limit ended a fit, in a program that has not loaded scikit-learn."""
