"""
A network of nations
====================

Fourteen countries in the 1950s and 60s, and 55 things that one may do to another: trade, protest,
send diplomats. The package pykeen brings the list (MIT licence; the data is R. J. Rummel's). A
network with kinds of edges is an array of yes and no: who, what, to whom.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import smartcpd

names = ["who", "what", "to whom"]
parts = [
    pd.read_csv(
        distribution("pykeen").locate_file(f"pykeen/datasets/nations/{part}.txt"),
        sep="\t",
        names=names,
    )
    for part in ("train", "valid", "test")
]
edges = pd.concat(parts)
X = smartcpd.from_table(edges, names, agg="any")
print(X.tensor)

# %%
# Under the loss "bernoulli-odds" components add up to the odds that an edge is there.

fit = smartcpd.SmartCPD(rank=4, loss="bernoulli-odds", random_state=0).fit(X)
model = fit.model_.sort()
print(fit.status_)

# %%
# For each component the six countries and things that it speaks of most. A component is read from
# top to bottom: these countries, do these things, to those.

figure, axes = plt.subplots(3, 4, figsize=(11, 8))
for r in range(4):
    for n in range(3):
        column = model.factors[n][:, r]
        order = np.argsort(column)[::-1][:6][::-1]
        axes[n, r].barh(
            np.asarray(X.modes[n].labels)[order],
            column[order],
            color=["#3565a8", "#c4622d", "#5b8c3a"][n],
        )
        axes[n, r].tick_params(axis="y", labelsize=7)
        axes[n, r].set_xticks([])
    axes[0, r].set_title(f"component {r + 1}")
for n, name in enumerate(names):
    axes[n, 0].set_ylabel(name)

# %%
# Can it tell edges that it has not seen? We hide the test part of the list, and some pairs that
# are no edges, and fit again without them.

index = [{label: i for i, label in enumerate(mode.labels)} for mode in X.modes]
cells = tuple(parts[2][name].map(at).to_numpy() for name, at in zip(names, index, strict=True))
truth = X.tensor.to_dense().astype(float)
hidden = np.zeros(truth.shape, bool)
hidden[cells] = True
hidden |= (truth == 0) & (np.random.default_rng(0).random(truth.shape) < 0.05)
again = smartcpd.SmartCPD(rank=4, loss="bernoulli-odds", random_state=0).fit(truth, mask=~hidden)
guess = again.model_.full()
edge, no_edge = guess[hidden & (truth == 1)], guess[hidden & (truth == 0)]
ahead = np.mean(edge[:, None] > no_edge)
print(f"{len(edge)} hidden edges, {len(no_edge)} hidden pairs without one")
print(f"In {ahead:.0%} of all comparisons the edge is ahead")

# %%
# **What to remember.** Four components know enough about fourteen countries to tell a hidden edge
# from a pair without one nine times in ten.
