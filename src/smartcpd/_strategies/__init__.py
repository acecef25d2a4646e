"""Strategies: ways from data to a model. One a file.

`auto` chooses one. A strategy finds starts, runs methods (`smartcpd._methods`) from them, and
compares what they found. ``solver=`` takes the name of a strategy, or of a method, which then
improves a random start.
"""
