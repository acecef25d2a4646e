"""
Seeing crops from the air
=========================

An aeroplane looked at fields in Indiana in 200 colours, most of them invisible (Indian Pines;
Baumgardner, Biehl and Landgrebe, CC BY 3.0; it comes with TensorLy). Brightness is positive, and
its error grows with it: the loss is "gamma".
"""

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_indian_pines

from smartcpd import SmartCPD

data = load_indian_pines()
image = np.asarray(data.tensor)[:144, :144, :]
crops = np.asarray(data.ticks[0])[:144, :144]
X = image.reshape(72, 2, 72, 2, 200).mean(axis=(1, 3))[:, :, ::4]  # coarser, to be quick
print(X.shape)

# %%
# A picture is no product of rows and columns, so pixels are one mode and colours the other: a
# matrix.

pixels = X.reshape(-1, X.shape[2])
model = SmartCPD(rank=3, loss="gamma", random_state=0).fit(pixels).model_.sort()
maps = (model.factors[0] * model.weights).reshape(72, 72, 3)
spectra = model.factors[1]
bands = np.asarray(data.ticks[1])[:200:4] if len(data.ticks[1]) >= 200 else np.arange(50)

# %%
# Two pictures belong together: where a component is, and which colours it has.

colours = ["#3565a8", "#c4622d", "#5b8c3a"]
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), width_ratios=[1, 1, 1, 1.4])
for r, colour in enumerate(colours):
    axes[r].imshow(maps[:, :, r], cmap="Greys", vmax=np.quantile(maps[:, :, r], 0.99))
    axes[r].set(xticks=[], yticks=[])
    axes[r].set_title(f"component {r + 1}", color=colour)
    axes[3].plot(bands, spectra[:, r], color=colour)
axes[3].set(xlabel="wavelength, nm", ylabel="brightness", yticks=[])

# %%
# On the ground somebody wrote down what grew where. How much of the light of a pixel is component
# 1?

names = {14: "woods", 5: "grass", 2: "maize", 10: "soybeans"}
coarse = crops[::2, ::2]
share = maps[:, :, 0] / maps.sum(axis=2)
for crop, name in names.items():
    print(f"{name}: {share[coarse == crop].mean():.0%}")

# %%
# **What to remember.** Living leaves are dark in red light and bright just beyond what we can see:
# the jump at 700 nm is how plants are recognised from the air. Component 1 has it. It is the woods
# and the grass; fields of maize and soybeans were bare soil with seedlings on that day in June.
