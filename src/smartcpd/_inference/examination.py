"""A fit beside its data, which is read once for everything that a report says of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from smartcpd._common import threads
from smartcpd._fitting.found import Fit
from smartcpd._fitting.mean_loss import mean_loss
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.shares import Readable, readable
from smartcpd._inference import dispersion
from smartcpd._inference.diagnosis import Diagnosis
from smartcpd._inference.diagnosis.case import Case, shared_evenly
from smartcpd._inference.diagnosis.examine import examined
from smartcpd._inference.diagnosis.tallies import Tallies
from smartcpd._inference.excerpt import Excerpt
from smartcpd._inference.rank_check.check import checked_rank
from smartcpd._inference.rank_check.verdict import RankVerdict
from smartcpd._objectives import Estimate
from smartcpd.quality import Quality
from smartcpd.quality.measure import QualityTally, model_reading, placed_in_whole


@dataclass(frozen=True, eq=False)
class Examination:
    """A fit beside the data it was made from, or an excerpt of that where it is not in memory.

    The fit has checked the data and knows the mean loss, so that neither is done again.

    Attributes
    ----------
    fit : Fit
    shown : Readable
        The fitted model as people read it, its components in order of their shares.
    excerpt : Excerpt
    """

    fit: Fit
    shown: Readable
    excerpt: Excerpt

    @classmethod
    def of(cls, fit: Fit) -> Examination:
        return cls(fit, readable(fit.model), Excerpt.of(fit.problem.storage))

    @cached_property
    def model(self) -> CPModel:
        """The readable model of the rows that are in the excerpt, as it stands next to the data."""
        if self.fit.inner is not None:
            return self._ordered
        return self.excerpt.rows_of(self.shown.model)

    @cached_property
    def mean_loss(self) -> Estimate:
        """On the cells of the excerpt."""
        if self.excerpt.rows is None and self.fit.inner is None:
            return self.fit.mean_loss
        return mean_loss(self.excerpt.storage, self.model)

    def dispersion(self) -> float | None:
        """How widely the data scatters, where the loss leaves that open."""
        return dispersion.estimate(self.model, self.excerpt.storage, known_loss=self.mean_loss.loss)

    @cached_property
    def rank(self) -> RankVerdict | None:
        """How the rank suits the data; None for data that is read part by part."""
        if self.excerpt.storage.fit_needs(self.model.rank) is not None:
            return None
        seconds = self.fit.history[-1].time if self.fit.history else 0.0
        model = self._ordered
        return checked_rank(
            replace(self.fit.problem, storage=self.excerpt.storage),
            model.distribute().factors,
            seconds,
        )

    def figures(self) -> tuple[Quality, Diagnosis | None]:
        """How well the model describes the data, and what may be wrong with the fit.

        Nothing is said of the second for data that is read part by part. Sentences count the
        components from 1, in the order in which they are shown.
        """
        storage = self.excerpt.storage
        reading = model_reading(self.model, storage)
        tally = QualityTally(reading)
        in_memory = storage.fit_needs(self.model.rank) is None
        tallies = Tallies(reading) if in_memory else None
        with threads.limited_to(threads.resolve(None)):
            reading.show_to(tally, *([] if tallies is None else [tallies]))
            quality = placed_in_whole(tally.quality(self.mean_loss), self.excerpt)
        return quality, None if tallies is None else examined(self._case(tallies))

    @cached_property
    def _ordered(self) -> CPModel:
        """The model as it was fitted, which constraints are about, in the order that is shown."""
        model, order = self.fit.met, self.shown.order
        factors = [A[:, order] for A in model.factors]
        return self.excerpt.rows_of(replace(model, factors=factors, weights=model.weights[order]))

    def _case(self, tallies: Tallies) -> Case:
        model = self._ordered
        problem = replace(self.fit.problem, storage=self.excerpt.storage)
        return Case(
            model,
            problem,
            shared_evenly(model, problem),
            tallies,
            self.fit.status,
            self.fit.history,
            rank=self.rank,
            in_whole=self.excerpt.in_whole,
        )
