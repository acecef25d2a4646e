"""The verdict about a rank: planted components, columns without structure, words, JSON."""

import json

import numpy as np
import pytest

import smartcpd
from smartcpd import SmartCPD, SparseTensor
from smartcpd._fitting.fit import fit
from smartcpd._inference.rank_check.check import checked_rank
from smartcpd._inference.rank_check.trials import (
    LEAST_SECONDS,
    SHARE_OF_FIT,
    Clock,
    Trials,
    least_seconds,
)
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits
from smartcpd._inference.selection.folds import one_fold
from smartcpd.errors import InvalidDataError


def verdict(X, rank, loss="poisson", **more):
    found = fit(X, rank, loss, random_state=0, progress=False, **more)
    return checked_rank(found.problem, found.model.distribute().factors)


@pytest.fixture(scope="module")
def planted():
    return smartcpd.datasets.count((25, 20, 15), rank=3, a_max=1.5, random_state=1).data


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "suits"), [(1, Suits.LOW), (3, Suits.WELL), (6, Suits.HIGH)])
def test_dense_and_sparse_counts(planted, rank, suits):
    before = planted.copy()
    found = verdict(planted, rank)
    assert found.suits is suits
    assert np.array_equal(planted, before)
    if suits is Suits.HIGH:
        assert found.better == 3
        assert len(found.surplus) == 3
    indices = np.argwhere(planted)
    values = planted[tuple(indices.T)]
    assert verdict(SparseTensor(indices, values, planted.shape), rank).suits is suits


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "suits"), [(1, Suits.LOW), (3, Suits.WELL), (6, Suits.HIGH)])
def test_yes_and_no(rank, suits):
    rng = np.random.default_rng(0)
    odds = np.einsum("ir,jr,kr->ijk", *(rng.gamma(0.3, 1.0, (n, 3)) for n in (30, 25, 20)))
    odds *= 0.5 / np.median(odds[odds > np.median(odds)])
    X = (rng.random(odds.shape) < odds / (1 + odds)).astype(np.uint8)
    assert verdict(X, rank, "bernoulli-odds").suits is suits


def test_what_components_of_noise_bring():
    """One component is planted; what a second one brings is about what chance brings."""
    rng = np.random.default_rng(3)
    shares = [rng.dirichlet(np.full(n, 5.0)) for n in (20, 18, 16)]
    X = rng.poisson(40_000 * np.einsum("i,j,k->ijk", *shares))
    one, two = (fit(X, rank, "poisson", random_state=0, progress=False) for rank in (1, 2))
    fold = one_fold(one.problem.storage, 5, rng)
    trials = Trials(one.problem, fold, Clock(1.0), 1)
    trial = trials.refitted(one.model.distribute().factors, lambda looks: True)
    by_chance = trials.gain_by_chance(trial) * fold.training.n_observed / X.size
    assert 0.2 * by_chance < one.loss - two.loss < 1.2 * by_chance


def test_columns_without_structure():
    rng = np.random.default_rng(0)
    shares = [rng.dirichlet(np.full(n, 0.7)) for n in (12, 10, 8)]
    found = verdict(rng.poisson(3000 * np.einsum("i,j,k->ijk", *shares)), 6)
    assert (found.suits, found.better) == (Suits.HIGH, 1)
    assert "1 component predicts held-out cells as well as 6" in found.headline


@pytest.mark.parametrize("so_far", [0.0, 0.5, 1.5, 3.0, 1000.0])
def test_a_check_takes_no_more_than_its_share_of_a_short_command(so_far):
    assert 0.0 <= least_seconds(so_far) <= min(SHARE_OF_FIT * so_far, LEAST_SECONDS)


def test_too_little_data_gives_no_verdict():
    assert verdict(SparseTensor([[0, 0], [1, 1]], 1, (3, 3)), 1).suits is Suits.UNKNOWN


def test_the_same_verdict_whatever_the_threads(planted):
    found = fit(planted, 2, "poisson", random_state=0, progress=False)
    factors = found.model.distribute().factors
    one, two = (checked_rank(found.problem, factors, n_threads=n).to_dict() for n in (1, 2))
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_diagnose_asks_if_it_is_told_to(planted):
    found = SmartCPD(1, "poisson", random_state=0).fit(planted)
    assert "rank" not in found.diagnose(planted).checked
    assert "rank too low" in found.diagnose(planted, compare_ranks=True).names


def test_words_and_json():
    high = RankVerdict(6, Suits.HIGH, 3, 0.4, 0.41, (1, 4), (4,))
    assert high.named_surplus() == "Components 2 and 5 have no counterpart among them."
    low = RankVerdict(1, Suits.LOW, 2, 0.07, 0.35)
    assert "2 components explain 35.0% of the deviance, 1 only 7.0%" in low.headline
    well = RankVerdict(4, Suits.WELL, tried=(3, 8))
    assert well.headline.endswith("3 components predict held-out cells worse, 8 no better.")
    both = RankVerdict(3, Suits.WELL, tried=(2, 1, 7))
    assert both.headline.endswith("1 or 2 components predict held-out cells worse, 7 no better.")
    lowest = RankVerdict(1, Suits.WELL, tried=(3,))
    assert lowest.headline.endswith("3 components predict held-out cells no better.")
    second = RankVerdict(2, Suits.WELL, tried=(1,))
    assert second.headline.endswith("1 component predicts held-out cells worse.")
    assert RankVerdict(4, Suits.UNKNOWN).headline == ""
    for each in (high, low, well):
        assert RankVerdict.from_dict(json.loads(json.dumps(each.to_dict()))) == each
    with pytest.raises(InvalidDataError, match="cannot be read"):
        RankVerdict.from_dict({"rank": 1})


def test_rows_of_a_few_events_give_no_verdict():
    """Where fewer components predict worse than a constant, too, they are no better choice."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(2000), 6)
    group = np.where(rng.random(user.size) < 0.9, user % 4, rng.integers(4, size=user.size))
    week, kind = rng.integers(18, size=user.size), 3 * group + rng.integers(3, size=user.size)
    X = SparseTensor(np.stack([week, user, kind], axis=1), np.ones(user.size))
    found = verdict(X, 4)
    assert found.suits is Suits.UNKNOWN
    assert "cannot be told" in found.headline


@pytest.mark.parametrize("seed", [1, 3])
def test_a_few_amounts_of_money_do_not_pass_for_noise(seed):
    """Large amounts scatter far more than counts do, and so few cells tell little for certain."""
    rng = np.random.default_rng(seed)
    X = np.zeros((12, 4, 5))
    for r, (size, month) in enumerate([(60_000, 3), (30_000, 7), (8_000, 11)]):
        season = np.exp(-0.5 * ((np.arange(12) - month) / 1.2) ** 2)
        shops = np.eye(4)[r] + 0.3 * np.eye(4)[3]
        X += size * np.einsum("i,j,k->ijk", season, shops, rng.dirichlet(np.full(5, 0.5)))
    X = np.round(X * rng.lognormal(0.0, 0.05, X.shape), 2) * (X >= 200)
    found = verdict(SparseTensor(np.argwhere(X), X[X > 0], X.shape), 2)
    assert found.suits is not Suits.HIGH


@pytest.mark.slow
def test_the_rank_that_is_named_is_not_too_low_itself():
    """Few events: a model of too many components predicts as badly as one of too few."""
    rng = np.random.default_rng(0)
    factors = [rng.gamma(0.5, 1.0, (n, 3)) for n in (30, 24, 7)]
    X = rng.poisson(0.5 * np.einsum("ir,jr,kr->ijk", *factors))
    sparse = SparseTensor(np.argwhere(X), X[X > 0], X.shape)
    named = {verdict(sparse, rank).better for rank in (3, 5)}
    assert named == {2}
    assert verdict(sparse, 2).suits is Suits.WELL
    assert verdict(sparse, 1).suits is Suits.LOW
