"""
Taking a mixture apart by its light
===================================

Catecholamines, messengers of the body, glow after a chemical reaction. Sixty-four mixtures of them
were lit with 10 colours, and their light was measured in 12 colours, 60 times in 20 minutes
(Nikolajsen, Booksh, Hansen and Bro 2003; for public use; it comes with TensorLy). What are the
spectra of the substances, and how does each of them come and go?
"""

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_kinetic

from smartcpd import SmartCPD

data = load_kinetic()
X, missing = np.asarray(data.tensor), np.asarray(data.missing_values_position)
good = np.setdiff1d(np.arange(64), data.outlier_measurements_idx)  # five measurements went wrong
X, missing = X[good, :, :, ::3], missing[good, :, :, ::3]
print(X.shape, f"{missing.mean():.1%} of the cells are missing")

# %%
# Physics says what components may look like. Nothing here is negative, and a spectrum has one
# peak.

free = SmartCPD(rank=3, loss="gaussian", constraint="free", random_state=0).fit(X, mask=~missing)
sane = SmartCPD(
    rank=3,
    loss="gaussian",
    constraint={0: "nonnegative", 1: "unimodal", 2: "nonnegative", 3: "nonnegative"},
    max_time=10,
    random_state=0,
).fit(X, mask=~missing)

# %%

colours = ["#3565a8", "#c4622d", "#5b8c3a"]
axis = [np.asarray(ticks, float) for ticks in data.ticks]
figure, axes = plt.subplots(2, 3, figsize=(11, 5), sharex="col")
for row, (name, fit) in enumerate([("free", free), ("constrained", sane)]):
    factors = fit.model_.sort().factors
    for column, (n, label) in enumerate(
        [(1, "emission, nm"), (2, "excitation, nm"), (3, "minutes")]
    ):
        values = factors[n] * np.sign(factors[n].sum(axis=0))
        for r, colour in enumerate(colours):
            x = axis[n][::3] if n == 3 else axis[n]
            axes[row, column].plot(x, values[:, r], color=colour)
        axes[row, column].axhline(0, color="#999999", linewidth=0.6)
        axes[1, column].set_xlabel(label)
    axes[row, 0].set_ylabel(name)

# %%

for name, fit in [("free", free), ("constrained", sane)]:
    unexplained = np.sum((X - fit.model_.full())[~missing] ** 2) / np.sum(X[~missing] ** 2)
    print(f"{name}: {unexplained:.2%} of the signal is left over")

# %%
# **What to remember.** Knowing that spectra have one peak and that nothing is negative costs next
# to nothing of the fit, and what comes out can be read: one substance glows at once and fades, one
# follows, one is still growing after twenty minutes.
