"""
Which rank, which loss?
=======================

We plant four components in counts, forget them, and ask the data. Then we try the wrong loss on
purpose.
"""

import matplotlib.pyplot as plt
import numpy as np

import smartcpd
from smartcpd import SmartCPD, metrics

X, truth = smartcpd.datasets.count((60, 50, 40), rank=4, random_state=1)
print(f"{X.size:,} cells, {np.mean(X == 0):.0%} of them zero, the largest {X.max()}")

# %%
# ``select`` hides cells, fits without them, and looks who predicts them best.

found = smartcpd.select(
    X, ranks=range(1, 8), losses="poisson", n_jobs=1, random_state=0, progress=False
)
print(found)

# %%

axes = found.plot()

# %%
# Four it is. Now the loss. The same data, fitted by least squares and under the Poisson loss; how
# near do the columns come to those that we planted?

scores = {}
for loss in ("gaussian", "poisson"):
    fit = SmartCPD(4, loss, constraint="nonnegative", random_state=0).fit(X)
    scores[loss] = metrics.factor_mse(fit.model_, truth)
    print(f"{loss}: mean squared error of the columns {scores[loss]:.1e}")

# %%
# One column of each, next to the truth:

figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True)
true = smartcpd.CPModel(truth).normalize()
for panel, loss in zip(axes, scores, strict=True):
    fit = SmartCPD(4, loss, constraint="nonnegative", random_state=0).fit(X)
    model = fit.model_.normalize().align(true)
    panel.plot(true.factors[2][:, 0], color="#999999", linewidth=3, label="planted")
    panel.plot(model.factors[2][:, 0], color="#c4622d", label="found")
    panel.set_title(f"{loss}: error {scores[loss]:.1e}")
    panel.set_xlabel("row")
axes[0].legend(frameon=False)

# %%
# **What to remember.** Hidden cells find the number of components without being told. And the loss
# is no detail: most of these counts are zeros and ones, about which least squares cares little.
# Its columns are more than twice as far from the truth.
