"""
Data that keeps arriving
========================

A shop counts what is sold, by day, product and hour. Every week a new slab of the array arrives,
and the old ones need not be kept. In week 7 something new begins.
"""

import matplotlib.pyplot as plt
import numpy as np

from smartcpd import SmartCPD

rng = np.random.default_rng(0)
products, hours = rng.gamma(0.5, 1, (40, 3)), np.zeros((24, 3))
for r, peak in enumerate([8, 13, 19]):
    hours[:, r] = np.exp(-((np.arange(24) - peak) ** 2) / 6)


def week(number):
    """Seven days of counts; the third habit, in the evening, begins in week 7."""
    days = rng.gamma(3, 2, (7, 3)) * [1, 1, number >= 7]
    return rng.poisson(np.einsum("dr,pr,hr->dph", days, products, hours))


# %%
# ``partial_fit`` takes a slab and forgets it. What it keeps is small: for each row of the other
# factors, how well it was known so far. Habits may change here, so with every week that comes the
# older ones count for 0.7 of what they did. With nothing forgotten, which is the default, six weeks
# without evenings would hold the new habit back.

stream = SmartCPD(rank=3, loss="poisson", random_state=0)
for number in range(1, 13):
    stream.partial_fit(week(number), forgetting=0.7)
print([factor.shape for factor in stream.factors_])

# %%

days, sold, profiles = stream.factors_
order = np.argsort(np.argmax(profiles, axis=0))
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2))
for r, colour in zip(order, ["#3565a8", "#c4622d", "#5b8c3a"], strict=True):
    axes[0].plot(profiles[:, r] / profiles[:, r].sum(), color=colour)
    sales = days[:, r] * sold[:, r].sum() * profiles[:, r].sum()
    axes[1].plot(np.arange(84) / 7 + 1, sales, color=colour)
axes[0].set(xlabel="hour", ylabel="share of a component")
axes[1].set(xlabel="week", ylabel="sold a day")
axes[1].axvline(7, color="#999999", linestyle=":")

# %%
# **What to remember.** The model saw each week once. It has the whole history of every habit, and
# the evening's begins in the week in which it began.
