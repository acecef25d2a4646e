"""The pictures of how-to pages, each made of what the code of its page computes.

`python docs/_site/howto_pictures.py exposure networks` draws those of some pages again, without
names those of all. They are kept in `docs/images`, so that pages show them wherever they are read.
"""

from __future__ import annotations

import doctest
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

DOCS = Path(__file__).resolve().parents[1]
COLOURS = ("#3565a8", "#c4622d", "#5b8c3a")
CODE = re.compile(r"(<!-- not run[^\n]*\n)?```(python|pycon)\n(.*?)```", re.S)


def names_of(page: Path) -> dict[str, Any]:
    """Run the code of a page, and return the names that it leaves."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for skipped, language, code in CODE.findall(page.read_text(encoding="utf-8")):
        if skipped:
            continue
        if language == "python":
            exec(code, names)
            continue
        for example in doctest.DocTestParser().get_examples(code):
            kind = "eval" if example.want else "exec"
            try:
                exec(compile(example.source, page.name, kind), names)
            except SyntaxError:
                exec(compile(example.source, page.name, "exec"), names)
    return names


def known_parts(names: dict[str, Any], figure: Any) -> None:
    """Draw a factor with its intervals, and how far it is from the truth with and without help."""
    X, truth, SmartCPD = names["X"], names["truth"], names["SmartCPD"]
    planted = names["smartcpd"].CPModel(truth).normalize()
    cases = {
        "nothing": {},
        "a component": {"fixed_components": names["known"]},
        "mode 0": {"fixed": {0: truth[0]}},
        "modes 0, 2": {"fixed": {0: truth[0], 2: truth[2]}},
    }
    errors = {}
    for name, options in cases.items():
        model = SmartCPD(3, "poisson", random_state=0, **options).fit(X).model_
        near = model.normalize().align(planted).factors[1]
        errors[name] = float(np.sqrt(np.mean((near - planted.factors[1]) ** 2)))
    axes = figure.subplots(1, 2, width_ratios=[1.4, 1])
    found, rows = names["intervals"], np.arange(len(truth[1]))
    own = planted.align(found.model.without_exposure()).factors[1][:, 0]
    low, high = found.lower[1][:, 0], found.upper[1][:, 0]
    axes[0].fill_between(rows, low, high, color=COLOURS[0], alpha=0.25, label="interval (90 %)")
    axes[0].plot(rows, found.model.factors[1][:, 0], color=COLOURS[0], label="found")
    axes[0].plot(rows, own, "o", color=COLOURS[1], label="planted")
    axes[0].set(xlabel="row of mode 1", ylabel="loading", title="Component 1, with mode 0 known")
    axes[0].set_xticks(rows[::3])
    axes[0].legend(frameon=False, fontsize=8)
    axes[1].barh(list(errors)[::-1], list(errors.values())[::-1], color=COLOURS[0], height=0.6)
    axes[1].set(xlabel="error of mode 1", title="What is known")


def penalties(names: dict[str, Any], figure: Any) -> None:
    """Draw a factor as it was planted, and as it is found with and without penalties."""
    t, planted = names["t"], names["CPModel"]([names["curves"], names["few"]]).normalize()
    axes = figure.subplots(1, 2, sharey=True)
    pairs = (("plain", "Without"), ("fit", "Smoothness, and an elastic net beside"))
    for axis, (name, title) in zip(axes, pairs, strict=True):
        found = names["CPModel"](names[name].model_.factors[:2]).normalize().align(planted)
        for r in range(2):
            axis.plot(t, planted.factors[0][:, r], "--", color=COLOURS[r], linewidth=1)
            axis.plot(t, found.factors[0][:, r], color=COLOURS[r])
        axis.set(xlabel="time", title=title)
    axes[0].set_ylabel("loading")
    axes[0].plot([], [], "--", color="#777777", linewidth=1, label="planted")
    axes[0].plot([], [], color="#777777", label="found")
    axes[0].legend(frameon=False, fontsize=8)


def networks(names: dict[str, Any], figure: Any) -> None:
    """Draw the groups of people that a shared factor finds, and the network that they make."""
    X, people, fit = names["X"], names["people"], names["fit"]
    model = fit.model_.normalize()
    order = np.lexsort((model.factors[0][:, 0], model.factors[0].argmax(axis=1)))
    axes = figure.subplots(1, 2, width_ratios=[1, 1.3])
    shown = np.sqrt(X.sum(axis=2)[np.ix_(order, order)])
    axes[0].imshow(shown, cmap="Blues")
    axes[0].set(xlabel="receiver", ylabel="sender", title="Messages (square roots)")
    axes[0].set_xticks([])
    axes[0].set_yticks([])
    rows = np.arange(len(people))
    for r in range(2):
        axes[1].bar(
            rows + 0.4 * (r - 0.5),
            model.factors[0][order, r],
            width=0.4,
            color=COLOURS[r],
            label=f"component {r + 1}",
        )
    axes[1].set(xlabel="person, as sender and receiver", ylabel="loading", title="One factor")
    axes[1].legend(frameon=False)


def exposure(names: dict[str, Any], figure: Any) -> None:
    """Draw rates of cities as they were found, with and without exposure, over those planted."""
    truth, people = names["truth"], names["people"]
    axes = figure.subplots(1, 2, sharey=True)
    planted = names["smartcpd"].CPModel(truth).normalize()
    for axis, found, title in zip(
        axes,
        (names["rates"].without_exposure(), names["plain"]),
        ("With exposure", "Without: what large cities have"),
        strict=True,
    ):
        near = found.normalize().align(planted)
        top = float(planted.factors[0].max())
        axis.plot([0, top], [0, top], color="#bbbbbb", linewidth=1)
        for r in range(2):
            axis.scatter(
                planted.factors[0][:, r],
                near.factors[0][:, r],
                s=12 * np.log10(people / 50) ** 2,
                color=COLOURS[r],
                alpha=0.7,
                label=f"component {r + 1}",
            )
        axis.set(xlabel="planted rate of a city", title=title)
    axes[0].set_ylabel("found")
    axes[0].legend(frameon=False, title="size: people", fontsize=8, title_fontsize=8)


def replication(names: dict[str, Any], figure: Any) -> None:
    """Draw how alike halves of the data are in each component."""
    names["found"].plot(ax=figure.subplots())


def covariates(names: dict[str, Any], figure: Any) -> Any:
    """Draw how the loadings of both components go with age, in a figure of its own."""
    drawn = names["relations"].plot("age")[0].figure
    drawn.set_size_inches(figure.get_size_inches())
    return drawn


PICTURES: dict[str, Callable[[dict[str, Any], Any], Any]] = {
    "known-parts": known_parts,
    "networks": networks,
    "penalties": penalties,
    "exposure": exposure,
    "replication": replication,
    "covariates": covariates,
}


def draw(page: str) -> Path:
    """Draw the picture of one page."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    target = DOCS / "images" / f"howto-{page}.png"
    figure = plt.figure(figsize=(8.0, 3.2), layout="constrained")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = PICTURES[page](names_of(DOCS / "howto" / f"{page}.md"), figure)
        figure = own or figure
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=110, facecolor="white")
    plt.close("all")
    return target


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        print(draw(name))
