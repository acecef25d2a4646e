"""
Where Oslo cycles to
====================

The package tensorly-viz brings three million trips with the city bikes of Oslo in 2020 and 2021
(MIT licence). We count where trips end, by station, day of the week and hour, and draw what we
find on a map.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import xarray as xr

from smartcpd import SmartCPD

file = distribution("tensorly-viz").locate_file("tlviz/datasets/oslo_bike.nc4")
trips = xr.open_dataset(file)["Bike trips"]
print(dict(trips.sizes))

X = trips.sum(["Year", "Month"]).astype(int)
fit = SmartCPD(rank=4, loss="poisson", random_state=0).fit(X)
model = fit.model_.sort()
print(fit.status_)

# %%
# An xarray keeps its names, so that we know what the factors are about. Stations have places:

colours = ["#3565a8", "#c4622d", "#5b8c3a", "#8a5a9e"]
stations, weekdays, hours = model.factors
figure, axes = plt.subplots(3, 4, figsize=(11, 5.2), height_ratios=[1.6, 1, 1])
for r, colour in enumerate(colours):
    share = stations[:, r] / stations[:, r].max()
    axes[0, r].scatter(X["lon"], X["lat"], s=60 * share, color=colour, alpha=0.7, linewidth=0)
    axes[0, r].set_aspect(2)
    axes[0, r].set(xticks=[], yticks=[])
    axes[0, r].set_title(f"component {r + 1}", color=colour)
    axes[1, r].bar(range(7), weekdays[:, r], color=colour)
    axes[1, r].set_xticks(range(7), list("MTWTFSS"))
    axes[2, r].bar(range(24), hours[:, r], color=colour)
    axes[2, r].set_xlabel("hour")
for r in range(4):
    best = stations[:, r].argsort()[::-1][:3]
    print(f"component {r + 1}:", ", ".join(X["End station name"].values[best]))

# %%
# **What to remember.** Nobody told the model what work is. It found the ride to work, which ends
# in the centre at eight on working days, the rides home and out in the afternoon and evening, and
# the weekend, which goes to the water.
