"""Samplers: which part of the data an iteration reads. One a file."""

from smartcpd.sampling.base import Draws, Sampler
from smartcpd.sampling.uniform import Uniform

__all__ = ["Draws", "Sampler", "Uniform"]
