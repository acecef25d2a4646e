"""Everything that is compiled.

Pieces (losses, mirror maps, constraints, step rules) are written as scalar Python functions.
`blocks` turns each into a small compiled function over arrays with a fixed signature, and the
loops (`sweep`, `passes`) receive those as first-class functions. A loop is therefore compiled once
for all losses, and every combination of pieces costs the sum of its parts, never the product. The
parameters of a loop are annotated with their types, which `kinds` lists.
"""
