"""The choice among penalties, by how likely held-out cells are under each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._data.storage import Storage
from smartcpd._fitting.fit import fit
from smartcpd._inference.selection.cross_validation import CrossValidation, cross_validate
from smartcpd._inference.selection.result import PenaltyRow, Selection
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError, InvalidParameterError


def with_penalty(
    found: Selection,
    storage: Storage,
    modes: tuple[Mode, ...] | None,
    penalties: Sequence[Any],
    options: dict[str, Any],
    parameters: dict[str, Any],
    seed: int,
    tell: Callable[[str], Any],
) -> Selection:
    """Return a selection whose model has the penalty that predicts held-out cells best.

    All penalties are judged on the same cells, with the rank and loss of the selection.
    """
    choices = _checked(penalties, parameters)
    for choice in choices:  # a wrong one is refused before any work is done
        Problem.build(storage, found.rank, found.loss, constraint=choice)
    scores: list[CrossValidation] = []
    for choice in choices:
        given = parameters | {"constraint": choice}
        scores.append(
            cross_validate(storage, found.rank, found.loss, random_state=seed, **options, **given)
        )
        tell(f"penalty {choice}: {scores[-1]}")
    worth = [_worth(score) for score in scores]
    best = int(np.argmax(worth))
    rows = []
    for place, (choice, score) in enumerate(zip(choices, scores, strict=True)):
        gap = scores[best].compare(score)
        rows.append(PenaltyRow(str(choice), worth[place], gap.value, gap.error, place == best))
    again = parameters | {"constraint": choices[best], "random_state": seed}
    model = replace(fit(storage, found.rank, found.loss, **again).model, modes=modes)
    return replace(found, model=model, penalty=choices[best], penalty_rows=tuple(rows))


def _checked(penalties: Sequence[Any], parameters: dict[str, Any]) -> list[Any]:
    if isinstance(penalties, str) or not isinstance(penalties, Sequence) or not penalties:
        raise InvalidParameterError(
            "penalties must be a list of choices for constraint=, such as ['ridge(0.01)', "
            f"'ridge(0.1)']; got {penalties!r}."
        )
    if "constraint" in parameters:
        raise IncompatibleError(
            "constraint= is one choice, and penalties= are several of the same kind. Give one of "
            "them; a penalty may be a dict with a choice for each mode."
        )
    return list(penalties)


def _worth(score: CrossValidation) -> float:
    likelihood = score.log_likelihood
    return likelihood if np.isfinite(likelihood) else -0.5 * score.deviance
