"""
The paper's algorithm, step by step
===================================

SmartCPD goes downhill in a geometry that fits the loss. What that means can be seen with two
unknowns and a few lines of NumPy.
"""

import matplotlib.pyplot as plt
import numpy as np

from smartcpd import SmartCPD, datasets

x = np.array([0.05, 4.0])  # two counts; the model is (a, b) itself


def loss(a):
    return np.sum(a - x * np.log(a), axis=-1)


def gradient(a):
    return 1 - x / a


# %%
# A *mirror map* says in which coordinates a step is straight. Plain gradient descent steps in the
# unknowns themselves; the map "entropy" steps in their logarithms, "burg" in one over them. The
# step is: go to the coordinates of the map, walk against the gradient, come back.

maps = {
    "quadratic": (lambda a: a, lambda d: np.maximum(d, 1e-3), 0.09),
    "entropy": (np.log, np.exp, 0.25),
    "burg": (lambda a: -1 / a, lambda d: -1 / np.minimum(d, -1e-3), 0.25),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True)
grid = np.stack(np.meshgrid(np.linspace(0.02, 3.2, 200), np.linspace(0.2, 7, 200)), axis=-1)
for panel, (name, (to_dual, to_primal, eta)) in zip(axes, maps.items(), strict=True):
    path = [np.array([3.0, 0.8])]
    for _ in range(15):
        a = path[-1]
        path.append(to_primal(to_dual(a) - eta * gradient(a)))
    path = np.array(path)
    panel.contour(
        grid[..., 0], grid[..., 1], loss(grid), levels=20, colors="#cccccc", linewidths=0.7
    )
    panel.plot(*path.T, "o-", color="#c4622d", markersize=4)
    panel.plot(*x, "*", color="#3565a8", markersize=12)
    panel.set(title=name, xlim=(0, 3.2), ylim=(0.2, 7))

# %%
# All three begin in the same place, and the star is the solution. The plain step (left) has to be
# short: near zero the loss is so steep that a longer one would jump over the solution and back. In
# the coordinates of "entropy" and "burg" steep places are stretched, and steps may be longer.
#
# Now the algorithm itself. An iteration draws a few *fibers*, lines of cells along one mode,
# computes the gradient on them alone, and makes a mirror step. How long a step is, entry by entry,
# is the *step rule*.

X, truth = datasets.count((50, 50, 50), rank=5, random_state=0)
figure, axes = plt.subplots(figsize=(8, 3.6))
for step, colour in [
    ("adagrad", "#c4622d"),
    ("constant(10)", "#3565a8"),
    ("constant(1)", "#5b8c3a"),
]:
    fit = SmartCPD(
        5,
        "poisson",
        solver="smd",
        step=step,
        overcomplete=1,
        averaging=False,
        max_epochs=30,
        tol=0,
        random_state=0,
    ).fit(X)
    axes.plot(fit.history_["entries"] / X.size, fit.history_["loss"], color=colour, label=step)
best = SmartCPD(5, "poisson", random_state=0).fit(X)
axes.axhline(best.loss_, color="#999999", linestyle=":", label="default fit")
axes.set(xlabel="entries read, in sizes of the array", ylabel="loss")
axes.legend(frameon=False)

# %%
# **What to remember.** A constant step has to be searched for: a tenth of the best one is slow,
# ten times the best one ends in infinity. Steps of its own for each entry ("adagrad") need no
# search, and are ahead from the beginning. The last bit, down to the dotted line, is what the
# default fit adds.
