"""Measurements behind the figures in the README; run with ``python -m benchmarks``."""
