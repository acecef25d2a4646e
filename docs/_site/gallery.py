"""Settings of the gallery: which examples there are, in which order, and how they are run."""

from __future__ import annotations

import logging
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gallery"
ORDER = [
    "plot_flights.py",
    "plot_strange_days.py",
    "plot_oslo_bikes.py",
    "plot_nations.py",
    "plot_missing_cells.py",
    "plot_hyperspectral.py",
    "plot_fluorescence.py",
    "plot_rank_and_loss.py",
    "plot_own_loss.py",
    "plot_streaming.py",
    "plot_larger_than_memory.py",
    "plot_mirror_descent.py",
]
"""In the order in which they are shown."""
SLOW = (
    "plot_hyperspectral.py",
    "plot_nations.py",
    "plot_oslo_bikes.py",
    "plot_rank_and_loss.py",
    "plot_streaming.py",
)
"""Too long for the quick form of the site, which shows them without running them."""


def settings(quick: bool) -> dict[str, object]:
    """Settings for sphinx-gallery."""
    run = [name for name in ORDER if not (quick and name in SLOW)]
    # What is said once on a new machine belongs on no page.
    for source in ("matplotlib.font_manager", "smartcpd.compilation"):
        logging.getLogger(source).setLevel(logging.ERROR)
    return {
        "examples_dirs": str(FOLDER),
        "gallery_dirs": "gallery",
        "filename_pattern": "|".join(map(re.escape, run)),
        "within_subsection_order": "gallery.Order",
        "reset_modules": ("matplotlib", "gallery.plain_pictures"),
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_memory": False,
        "plot_gallery": "True",
        "copyfile_regex": r".*\.csv",
        "min_reported_time": 1000,
        "show_signature": False,
        "remove_config_comments": True,
        # What is printed is shown; what the last line of a piece happens to be is not.
        "capture_repr": (),
    }


class Order:
    """A key that sorts files as `ORDER` says."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        return ORDER.index(name)

    def __repr__(self) -> str:
        return "Order"


def plain_pictures(gallery_conf, name) -> None:
    """Pictures that read well on a light and on a dark page."""
    import matplotlib

    matplotlib.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.constrained_layout.use": True,
            "savefig.facecolor": "white",
            "font.size": 9,
        }
    )
