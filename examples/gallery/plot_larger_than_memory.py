"""
A tensor larger than memory
===========================

Arrays on disk are fitted where they are. To show it in a moment, we write an array of 27 million
counts and pretend that the machine has 8 MB for it.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import zarr

import smartcpd
from smartcpd import SmartCPD, metrics

X, truth = smartcpd.datasets.count((300, 300, 300), rank=4, random_state=0)
path = Path(tempfile.mkdtemp()) / "counts.zarr"
stored = zarr.create_array(path, shape=X.shape, dtype=X.dtype, chunks=(75, 75, 75))
stored[...] = X

# %%
# What would a fit do? ``explain`` says it before any work.

print(smartcpd.explain(stored, 4, "poisson", max_memory="8MB"))

# %%

fit = SmartCPD(4, "poisson", max_memory="8MB", random_state=0).fit(stored)
print(fit.status_)
print(f"error of the factors: {metrics.factor_mse(fit.model_, truth):.1e}")

# %%
# Each point is an entry of a factor: what was planted, and what was found on disk.

true = smartcpd.CPModel(truth).normalize()
found = fit.model_.normalize().align(true)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4))
for n, panel in enumerate(axes):
    panel.plot(true.factors[n].ravel(), found.factors[n].ravel(), ".", color="#3565a8", alpha=0.4)
    panel.axline((0, 0), slope=1, color="#999999", linewidth=0.8)
    panel.set(xlabel="planted", title=f"mode {n + 1}")
axes[0].set_ylabel("found")

# %%
# **What to remember.** Nothing but ``max_memory`` had to be said. The fit ended when it had seen
# enough, before it had read everything.
