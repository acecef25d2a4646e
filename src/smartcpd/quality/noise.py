"""What the data of a loss is called, and whether the loss knows how large its noise is."""

from __future__ import annotations

from smartcpd.losses import Data, Loss

NAMES = {Data.COUNTS: "counts", Data.BINARY: "probabilities"}


def data_name(loss: Loss) -> str:
    """Return what a report calls the data of a loss."""
    return NAMES.get(loss.data, "measurements")


def has_scale(loss: Loss) -> bool:
    """Whether the loss says how large its noise is; otherwise that is estimated."""
    return loss.data in NAMES and loss.knows("variance")
