"""The base class of step rules: the scaling Gamma of the Bregman term, entry by entry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from smartcpd._common.piece import Piece
from smartcpd._kernels.blocks import formula_block, scale_block
from smartcpd._kernels.compiling import Block


@dataclass(frozen=True)
class Probe:
    """A probe tells a step rule the scale of a mode before the first step.

    Attributes
    ----------
    gradient_square : float
        Mean square of the entries of the fit's first sampled gradients.
    unit : float
        The change in the dual that changes a typical entry of the factor by about its own size.
    updates : float
        How often an epoch updates the mode, on average.
    half : float
        The change in the dual that halves a typical entry, where steps of its own size would end
        at 0: under maps that let them, and in sets that end there. Infinity elsewhere.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("constant").params(steps.Probe(gradient_square=4.0, unit=1.0))
    (0.05, 0.0)
    """

    gradient_square: float
    unit: float
    updates: float = 1.0
    half: float = math.inf


@dataclass(frozen=True)
class Step(Piece):
    """A step rule chooses Gamma, entry by entry.

    The larger Gamma is, the shorter is the step ``g / Gamma`` in the dual.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("constant(0.1)")
    Constant(eta=0.1)
    """

    needs_convex_part: ClassVar[bool] = False
    """Whether ``gamma`` uses c and d, which cost a matrix product."""

    @property
    def paces(self) -> tuple[float, ...]:
        """The lengths of steps, relative to what ``params`` says, that are tried in turn."""
        return (1.0,)

    @property
    def max_ratio(self) -> float:
        """The most by which a step may change an entry towards an end of the dual."""
        return math.inf

    def params(self, probe: Probe) -> tuple[float, float]:
        """Return the two numbers that ``gamma`` receives as p, for one mode.

        Parameters
        ----------
        probe : Probe
            The scale of the mode before the first step, from which defaults are taken.

        Returns
        -------
        tuple of two floats

        Examples
        --------
        >>> from smartcpd import steps
        >>> steps.get("adagrad").params(steps.Probe(gradient_square=4.0, unit=1.0))
        (1.0, 0.004)
        """
        return self.pair

    @staticmethod
    def gamma(g: Any, c: Any, d: Any, s: Any, k: Any, p: Any) -> Any:
        """Return Gamma and the new state of one entry.

        This is what a step rule of your own defines. It is compiled, as a function of numbers.

        Parameters
        ----------
        g : float
            The gradient of the entry.
        c : float
            The same product with the derivative of the loss's convex part, where
            ``needs_convex_part``.
        d : float
            The derivative of the mirror map at the entry, where ``needs_convex_part``.
        s : float
            The state that the rule keeps for the entry, 0 at first.
        k : float
            How often the mode was updated before.
        p : pair of floats
            What `params` gave.

        Returns
        -------
        tuple of two floats
            Gamma, and the new state.

        Examples
        --------
        >>> from smartcpd import steps
        >>> steps.get("adagrad(0.5)").gamma(3.0, 0.0, 0.0, 16.0, 1, (0.5, 0.0))
        (10.0, 25.0)
        """
        raise NotImplementedError

    def scale_block(self, dtype: str) -> Block:
        """Return ``gamma`` compiled for whole factors of a type.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the entries.

        Returns
        -------
        Block
            A function of (g, c, d, s, k, p, Gamma), all but k and p vectors, that fills Gamma and
            brings the states s up to date.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import steps
        >>> g, nothing, s, Gamma = np.array([3.0]), np.zeros(1), np.array([16.0]), np.empty(1)
        >>> block = steps.get("adagrad(0.5)").scale_block("float64")
        >>> block(g, nothing, nothing, s, 1.0, (0.5, 0.0), Gamma)
        >>> Gamma.round(6), s
        (array([10.]), array([25.]))
        """
        return formula_block(scale_block, self.blueprint, self.variant("gamma"), dtype)
