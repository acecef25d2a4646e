"""Fits that outlive their process: what they have done is kept in files, and not done again.

A fit that goes on runs the same program from the beginning. Stages that were completed give their
results at once, and the loop that was interrupted goes on from its last state: see `Journal`.
"""
