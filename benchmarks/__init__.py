"""Measurements behind the figures of README and site; run with ``python -m benchmarks``."""
