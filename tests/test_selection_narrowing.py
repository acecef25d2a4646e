"""Which ranks and folds a selection spends its fits on, told from scores that are made up."""

import numpy as np
import pytest

from smartcpd import CPModel, datasets, losses, metrics
from smartcpd._common.stacked import stack
from smartcpd._data.opening import as_storage
from smartcpd._inference.selection.candidates import Candidate
from smartcpd._inference.selection.folds import Fold
from smartcpd._inference.selection.narrowing import chosen
from smartcpd._inference.selection.rule import ONE, contenders, is_near, walk, walk_near
from smartcpd._inference.selection.scores import FoldScore
from smartcpd._inference.selection.training import Fitted, fitted
from smartcpd._inference.selection.trials import Trials
from smartcpd._objectives import objective_of

POISSON = Candidate(losses.get("poisson"))
OPEN = Candidate(losses.get("negative-binomial"))
CELLS, FOLDS = 400, 5


class MadeUp(Trials):
    """Trials whose scores are a mean for each candidate and rank, and noise of a cell and rank."""

    def __init__(self, means, noise=0.05):
        rng = np.random.default_rng(0)
        weights = np.ones(CELLS)
        folds = [Fold(None, [], rng.standard_normal(CELLS), weights) for _ in range(FOLDS)]
        super().__init__(folds, float(CELLS * FOLDS), 0, {}, 1)
        self.means, self.noise, self.made = means, noise, []

    def score(self, candidate, rank, k):
        known = self.scores.setdefault((candidate, rank), {})
        if k not in known:
            self.made.append((candidate, rank, k))
            rng = np.random.default_rng([rank, k, candidate.n_estimated])
            scatter = rng.standard_normal(CELLS)
            score = self.folds[k].x + self.means[candidate][rank - 1] + self.noise * scatter
            fit = Fitted(CPModel([np.ones((2, rank))] * 2), 0.0, True, False, 0.0)
            known[k] = FoldScore(self.folds[k], fit, 1.0, -2 * score, score)
        return known[k]


def selected(means, noise=0.05):
    trials = MadeUp(means, noise)
    ranks = list(range(1, len(means[POISSON]) + 1))
    tried = {POISSON: walk(trials, POISSON, ranks)}
    if OPEN in means:
        plain = [(POISSON, rank) for rank in tried[POISSON]]
        tried[OPEN] = walk_near(trials, OPEN, ranks, plain)
    return trials, tried, chosen(trials, contenders(trials, tried))


RISING = [-1.0, -0.5, -0.2, -0.1, -0.05, -0.02, 0.0, -0.001, -0.01, -0.02, -0.03]


class TestNarrowing:
    def test_the_choice_and_the_best_are_scored_on_all_folds(self):
        trials, _, choice = selected({POISSON: RISING})
        assert choice.key == (POISSON, 7)
        assert choice.best[1] in (7, 8)
        assert all(len(trials.scores[key]) == FOLDS for key in choice)

    @pytest.mark.parametrize("noise", [0.05, 0.3, 1.0])
    def test_halving_finds_what_all_fits_would(self, noise):
        trials, tried, choice = selected({POISSON: RISING}, noise)
        made = len(trials.made)
        assert made < FOLDS * len(tried[POISSON])
        for rank in tried[POISSON]:
            for k in range(FOLDS):
                trials.score(POISSON, rank, k)
        lower = [r for r in tried[POISSON] if r <= choice.best[1]]
        near = [r for r in lower if is_near(trials, (POISSON, r), choice.best, ONE)]
        assert choice.key[1] == min(near)

    def test_ranks_that_are_clearly_worse_cost_one_fold(self):
        trials, _, _ = selected({POISSON: RISING})
        assert {k for _, rank, k in trials.made if rank <= 5} == {0}

    def test_a_loss_that_is_clearly_worse_at_its_best_costs_one_fold(self):
        wider = [score + 0.1 for score in RISING]
        trials, _, choice = selected({POISSON: RISING, OPEN: wider})
        assert choice.key[0] == OPEN
        assert {k for candidate, _, k in trials.made if candidate == POISSON} == {0}

    def test_an_open_loss_is_tried_where_its_relative_is_good(self):
        wider = [score + 0.1 for score in RISING]
        _, tried, choice = selected({POISSON: RISING, OPEN: wider})
        assert choice.key == (OPEN, 7)
        assert tried[POISSON][0] == 1
        # One rank below what is good is fitted, which shows that lower ones are worse still.
        assert 1 < tried[OPEN][0] < 7

    def test_an_open_loss_may_need_fewer_components(self):
        wider = [0.05, 0.2, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.0, -0.05, -0.1]
        _, tried, choice = selected({POISSON: RISING, OPEN: wider})
        assert choice.key == (OPEN, 3)
        assert tried[OPEN][0] <= 2


class TestWays:
    """From where fits of other folds start."""

    def trials(self, widens):
        trials = Trials([None] * 2, 1.0, 0, {}, 1)
        for rank in (1, 2, 3, 4, 5):
            model = CPModel([np.ones((2, rank))] * 2)
            fit = Fitted(model, 1.0, True, False, 0.0, widens=widens and rank > 1)
            score = FoldScore(None, fit, 1.0, np.zeros(1), None)
            trials.scores[POISSON, rank] = {0: score, 1: score} if rank < 5 else {0: score}
        return trials

    def test_as_on_the_first_fold_where_the_rank_below_led_as_low(self):
        previous, scratch = self.trials(True)._ways(POISSON, 5, 1)
        assert previous.model.rank == 4
        assert not scratch

    def test_from_scratch_where_it_led_nowhere(self):
        assert self.trials(False)._ways(POISSON, 5, 1) == (None, True)

    def test_the_first_fold_gives_up_on_it_after_three_ranks(self):
        assert self.trials(False)._ways(POISSON, 6, 0) == (None, True)
        previous, scratch = self.trials(True)._ways(POISSON, 6, 0)
        assert previous.model.rank == 5
        assert scratch

    def test_a_model_of_the_same_loss_is_gone_on_from(self):
        X, truth = datasets.count((10, 9, 8), 2, a_max=2.0, random_state=0)
        storage = as_storage(X, "zero", None, None)
        kin = CPModel(truth, loss_function="poisson")
        seed = np.random.SeedSequence(0)
        found = fitted(storage, 2, POISSON, seed, {"n_threads": 1}, kin=kin)
        before = objective_of(storage, POISSON.loss).estimate(stack(truth)).loss
        assert found.loss < before
        assert metrics.factor_match_score(found.model, kin) > 0.9
