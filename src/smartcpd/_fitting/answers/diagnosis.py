"""The findings about a fit as plain values, which go to JSON and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from smartcpd._common.doors import doors
from smartcpd.errors import InvalidDataError


class Severity(StrEnum):
    """How much a finding matters."""

    NOTE = "note"
    """Worth knowing; the fit may be as good as the data allows."""
    WARNING = "warning"
    """Something should be done about it."""


@dataclass(frozen=True)
class Finding:
    """One thing that may be wrong.

    Attributes
    ----------
    name : str
        The check that found it, such as "over-dispersion".
    severity : Severity
        How much it matters.
    brief : str
        The finding in a few words.
    meaning : str
        What was seen and what it means, in a sentence.
    advice : str
        What to do, in a sentence.
    figures : dict
        What was measured, by name: numbers, or lists of numbers.
    """

    name: str
    severity: Severity
    brief: str
    meaning: str
    advice: str
    figures: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.severity}: {self.name}. {self.meaning} {self.advice}"


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The findings about a fit; iterating goes through them, warnings first.

    Attributes
    ----------
    findings : tuple of Finding
        What was found.
    checked : tuple of str
        Names of all checks that were made; one that means nothing for a loss is left out.
    sampled_cells : int
        How many cells were drawn where not all were read; 0 if all were.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel
    >>> model = CPModel([np.ones((4, 1)), np.full((5, 1), 2.0)], loss_function="poisson")
    >>> diagnosis = model.diagnose(np.tile([1, 2, 3, 2, 2], (4, 1)))
    >>> diagnosis.ok, diagnosis.names
    (True, ())
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    sampled_cells: int = 0

    @property
    def ok(self) -> bool:
        """Whether there is no warning; notes may be there."""
        return not any(f.severity is Severity.WARNING for f in self.findings)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the findings."""
        return tuple(f.name for f in self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        """Always true: whether all is well is ``ok``."""
        return True

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        known = ", ".join(self.names) or "nothing"
        raise KeyError(f"Nothing of the name {name!r} was found; there is: {known}.")

    def __repr__(self) -> str:
        found = ", ".join(f"{f.severity}: {f.name}" for f in self.findings) or "nothing wrong"
        return f"Diagnosis({found}; {len(self.checked)} questions asked)"

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)

    def __str__(self) -> str:
        lines = []
        for finding in self.findings:
            lines += [
                f"{finding.severity.upper()}: {finding.name}",
                f"  {finding.meaning}",
                f"  {finding.advice}",
            ]
        if not self.findings:
            lines.append("Nothing wrong was found.")
        lines.append(f"Checked: {', '.join(self.checked)}.")
        if self.sampled_cells:
            lines.append(f"Based in part on a sample of {self.sampled_cells:,} cells.")
        return "\n".join(lines)

    def reworded(self, words: Callable[[str], str]) -> Diagnosis:
        """Return the same findings in other words, such as those of the command line.

        Parameters
        ----------
        words : callable (str) -> str
            What makes of a sentence another one.

        Returns
        -------
        Diagnosis

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((4, 2)), np.ones((5, 2))], loss_function="poisson")
        >>> diagnosis = model.diagnose(np.tile([1, 2, 3, 2, 2], (4, 1)))
        >>> words = diagnosis.reworded(lambda text: text.replace("n_init=", "--starts "))
        >>> words["duplicate components"].advice
        'Use a lower rank, or more starts (--starts 5).'
        """
        findings = (
            replace(f, meaning=words(f.meaning), advice=words(f.advice)) for f in self.findings
        )
        return replace(self, findings=tuple(findings))

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as dicts, lists, numbers and text, which JSON can hold.

        Returns
        -------
        dict
            ``findings``, ``checked`` and ``sampled_cells``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((4, 2)), np.ones((5, 2))], loss_function="poisson")
        >>> diagnosis = model.diagnose(np.tile([1, 2, 3, 2, 2], (4, 1)))
        >>> [finding["name"] for finding in diagnosis.to_dict()["findings"]]
        ['duplicate components']
        """
        return {
            "findings": [
                {
                    "name": f.name,
                    "severity": str(f.severity),
                    "brief": f.brief,
                    "meaning": f.meaning,
                    "advice": f.advice,
                    "figures": f.figures,
                }
                for f in self.findings
            ],
            "checked": list(self.checked),
            "sampled_cells": self.sampled_cells,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Diagnosis:
        """Read what `to_dict` gave.

        Parameters
        ----------
        given : mapping
            What `to_dict` gave, from JSON perhaps.

        Returns
        -------
        Diagnosis

        Raises
        ------
        InvalidDataError
            If it is something else.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((4, 2)), np.ones((5, 2))], loss_function="poisson")
        >>> diagnosis = model.diagnose(np.tile([1, 2, 3, 2, 2], (4, 1)))
        >>> type(diagnosis).from_dict(diagnosis.to_dict()) == diagnosis
        True
        """
        try:
            findings = tuple(
                Finding(
                    str(f["name"]),
                    Severity(f["severity"]),
                    str(f["brief"]),
                    str(f["meaning"]),
                    str(f["advice"]),
                    dict(f["figures"]),
                )
                for f in given["findings"]
            )
            checked = tuple(str(name) for name in given["checked"])
            return cls(findings, checked, int(given["sampled_cells"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidDataError(
                f"These findings about a fit cannot be read: {error}. Diagnose it again."
            ) from None
