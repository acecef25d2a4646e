"""
Cells that answer, and cells that were never measured
=====================================================

How strongly do immune cells answer to 13 variants of the messenger IL-2, at 12 doses and 4 times?
The data comes with TensorLy (Orcutt-Jahns and others 2021, MIT licence). One in 26 measurements is
missing. Can a model fill the holes, and more that we make ourselves?
"""

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_IL2data

from smartcpd import SmartCPD

data = load_IL2data()
X = np.asarray(data.tensor)
ligands, times, doses, cells = data.ticks
print(X.shape, f"{np.isnan(X).mean():.1%} of the cells are missing")

# %%
# Answers are not negative, so we ask for components that only add. NaN is missing, and nothing has
# to be filled in.

fit = SmartCPD(rank=3, loss="gaussian", constraint="nonnegative", random_state=0).fit(X)
model = fit.model_.sort()
print(fit.status_)

# %%

colours = ["#3565a8", "#c4622d", "#5b8c3a"]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), width_ratios=[1, 1, 1.3])
for r, colour in enumerate(colours):
    axes[0].plot(doses, model.factors[2][:, r], color=colour, label=f"component {r + 1}")
    axes[1].plot(times, model.factors[1][:, r], "o-", color=colour)
    axes[2].barh(np.arange(8) + 0.27 * (r - 1), model.factors[3][:, r], height=0.27, color=colour)
axes[0].set(xscale="log", xlabel="dose in nM", ylabel="loading")
axes[0].legend(frameon=False)
axes[1].set(xlabel="hours", ylim=(0, None))
axes[2].set_yticks(range(8), cells, fontsize=8)

# %%
# Now hide a fifth of what was measured, fit again, and compare the prediction with what was
# hidden.

seen = ~np.isnan(X)
hidden = seen & (np.random.default_rng(0).random(X.shape) < 0.2)
again = SmartCPD(rank=3, loss="gaussian", constraint="nonnegative", random_state=0).fit(
    X, mask=seen & ~hidden
)
predicted = again.model_.full()[hidden]
explained = 1 - np.mean((X[hidden] - predicted) ** 2) / np.var(X[hidden])
print(f"Of {hidden.sum()} hidden measurements, {explained:.0%} of the variance is predicted")

figure, axes = plt.subplots(figsize=(4, 4))
axes.plot(X[hidden], predicted, ".", color="#3565a8", alpha=0.4)
axes.plot([0, 1], [0, 1], color="#999999")
axes.set(xlabel="measured, but hidden", ylabel="predicted")

# %%
# **What to remember.** Regulatory T cells (Treg) answer to doses at which other cells are still
# silent: one component is about them, and it sets in at the lowest dose. Three components know
# enough to replace a fifth of the experiments.
