"""Metrics of factors: what they ignore, what they cannot ignore, and peers' figures."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartcpd._fitting.model import CPModel
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.metrics import factor_match_score, factor_mse, factor_mse_authors, factor_mse_joint

quick = settings(max_examples=20, deadline=None)
MSES = [factor_mse, factor_mse_joint, factor_mse_authors]


def random_factors(shape, rank, rng):
    return [rng.standard_normal((size, rank)) for size in shape]


def unit(A):
    return A / np.linalg.norm(A, axis=0)


@st.composite
def pairs(draw):
    """Two sets of factors of one shape, and a generator for what is done to them."""
    shape = draw(st.lists(st.integers(2, 6), min_size=2, max_size=4))
    rank = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_factors(shape, rank, rng), random_factors(shape, rank, rng), rng


class TestMse:
    @quick
    @given(pairs())
    def test_ignores_order_sign_and_scale(self, drawn):
        A, B, rng = drawn
        rank = A[0].shape[1]
        order = rng.permutation(rank)
        changed = [
            (a * rng.choice([-1, 1], rank) * rng.uniform(1e-3, 1e3, rank))[:, order] for a in A
        ]
        for mse in MSES:
            assert mse(changed, B) == pytest.approx(mse(A, B), abs=1e-12)
            assert mse(changed, A) == pytest.approx(0.0, abs=1e-24)

    @quick
    @given(pairs())
    def test_each_mode_may_have_its_own_order_except_jointly(self, drawn):
        A, B, rng = drawn
        shuffled = [a[:, rng.permutation(a.shape[1])] for a in A]
        assert factor_mse(shuffled, B) == pytest.approx(factor_mse(A, B), abs=1e-12)
        assert factor_mse_joint(A, B) >= factor_mse(A, B) - 1e-12

    @quick
    @given(pairs())
    def test_is_the_best_of_all_permutations_and_signs(self, drawn):
        A, B, _ = drawn
        rank = A[0].shape[1]

        def error(a, b, order):
            a, b = unit(a)[:, order], unit(b)
            both = ((a - b) ** 2).sum(axis=0), ((a + b) ** 2).sum(axis=0)
            return np.minimum(*both).sum() / rank

        orders = [list(p) for p in itertools.permutations(range(rank))]
        table = np.array([[error(a, b, p) for a, b in zip(A, B, strict=True)] for p in orders])
        assert factor_mse(A, B) == pytest.approx(table.min(axis=0).mean(), abs=1e-12)
        assert factor_mse_joint(A, B) == pytest.approx(table.mean(axis=1).min(), abs=1e-12)

    @quick
    @given(pairs())
    def test_authors_scale(self, drawn):
        A, B, _ = drawn
        expected = factor_mse(A, B) * len(A) / A[0].shape[1]
        assert factor_mse_authors(A, B) == pytest.approx(expected)

    @quick
    @given(pairs())
    def test_symmetric_and_bounded(self, drawn):
        A, B, _ = drawn
        for mse in (factor_mse, factor_mse_joint):
            assert mse(A, B) == pytest.approx(mse(B, A), abs=1e-12)
            assert 0 <= mse(A, B) <= 2

    def test_a_small_angle_by_hand(self):
        # Unit vectors an angle t apart are 2 sin(t/2) from each other; only one mode of two turns.
        t = 1e-6
        A = [np.array([[1.0], [0.0]])] * 2
        B = [np.array([[np.cos(t)], [np.sin(t)]]), A[1]]
        assert factor_mse(A, B) == pytest.approx((2 * np.sin(t / 2)) ** 2 / 2, rel=1e-6)

    def test_orthogonal_columns_are_two_apart_and_zero_columns_one(self):
        e = np.eye(4)
        assert factor_mse([e[:, :2]] * 2, [e[:, 2:]] * 2) == pytest.approx(2.0)
        assert factor_mse([np.zeros((4, 2))] * 2, [e[:, 2:]] * 2) == pytest.approx(1.0)
        assert factor_mse([np.zeros((4, 2))] * 2, [np.zeros((4, 2))] * 2) == 0.0

    def test_models_and_lists_mix_and_weights_play_no_part(self):
        rng = np.random.default_rng(0)
        A, B = random_factors((4, 5), 3, rng), random_factors((4, 5), 3, rng)
        model = CPModel(A, [3.0, -2.0, 0.5])
        for mse in MSES:
            assert mse(model, B) == pytest.approx(mse(A, CPModel(B)))

    @pytest.mark.parametrize("mse", MSES)
    def test_refuses_factors_that_do_not_compare(self, mse):
        A = [np.ones((4, 2)), np.ones((5, 2))]
        with pytest.raises(IncompatibleError, match=r"shape=4x5.*shape=5x4"):
            mse(A, A[::-1])
        with pytest.raises(IncompatibleError, match="different shapes"):
            mse(A, [*A, np.ones((3, 2))])
        with pytest.raises(IncompatibleError, match=r"ranks, 2 and 1.*factor_match_score"):
            mse(A, [a[:, :1] for a in A])
        with pytest.raises(InvalidParameterError, match="factor of mode 1 holds NaN"):
            mse(A, [A[0], np.full((5, 2), np.nan)])


class TestMatchScore:
    @quick
    @given(pairs())
    def test_one_for_the_same_components(self, drawn):
        A, _, rng = drawn
        rank = A[0].shape[1]
        weights, order = rng.uniform(0.5, 2.0, rank), rng.permutation(rank)
        signs = rng.choice([-1, 1], (len(A), rank))
        same = CPModel([(a * s)[:, order] for a, s in zip(A, signs, strict=True)], weights[order])
        assert factor_match_score(same, A) == pytest.approx(1.0)
        assert factor_match_score(same, CPModel(A, weights), weights=True) == pytest.approx(1.0)

    @quick
    @given(pairs())
    def test_is_the_best_of_all_permutations(self, drawn):
        A, B, _ = drawn
        cosines = np.prod([np.abs(unit(a).T @ unit(b)) for a, b in zip(A, B, strict=True)], axis=0)
        rank = len(cosines)
        best = max(cosines[p, range(rank)].mean() for p in itertools.permutations(range(rank)))
        assert factor_match_score(A, B) == pytest.approx(best)

    @quick
    @given(pairs(), st.booleans())
    def test_symmetric_bounded_and_lower_with_weights(self, drawn, weights):
        A, B, _ = drawn
        score = factor_match_score(A, B, weights)
        assert score == pytest.approx(factor_match_score(B, A, weights))
        assert 0 <= score <= factor_match_score(A, B) + 1e-12 <= 1 + 1e-12

    def test_the_smaller_rank_is_matched_whole(self):
        A = random_factors((6, 7, 8), 5, np.random.default_rng(0))
        some = [a[:, [3, 1]] for a in A]
        assert factor_match_score(some, A) == pytest.approx(1.0)
        assert factor_match_score(A, some, weights=True) == pytest.approx(1.0)

    def test_weights_by_hand(self):
        A = [np.ones((2, 1))] * 3
        assert factor_match_score(CPModel(A, [1.0]), CPModel(A, [4.0]), weights=True) == (
            pytest.approx(0.25)
        )
        assert factor_match_score(CPModel(A, [1.0]), CPModel(A, [4.0])) == pytest.approx(1.0)

    def test_a_zero_component_matches_nothing(self):
        A = [np.ones((2, 1))] * 2
        assert factor_match_score(A, [np.zeros((2, 1))] * 2) == 0.0
        assert factor_match_score([np.zeros((2, 1))] * 2, A, weights=True) == 0.0

    def test_refuses_different_shapes(self):
        with pytest.raises(IncompatibleError, match="different shapes"):
            factor_match_score([np.ones((2, 1))] * 2, [np.ones((3, 1))] * 2)


class TestPeers:
    """Near-identical components, so that pyttb's greedy matching is the best one too."""

    @pytest.fixture
    def models(self):
        rng = np.random.default_rng(3)
        truth = random_factors((10, 11, 12), 4, rng)
        order = rng.permutation(4)
        estimate = [(a + 0.1 * rng.standard_normal(a.shape))[:, order] for a in truth]
        return CPModel(truth, rng.uniform(1, 2, 4)), CPModel(estimate, rng.uniform(1, 2, 4))

    def test_match_score_is_that_of_pyttb(self, models):
        pytest.importorskip("pyttb")
        truth, estimate = models
        one, two = truth.to_pyttb(), estimate.to_pyttb()
        assert factor_match_score(truth, estimate) == pytest.approx(
            one.score(two, weight_penalty=False)[0]
        )
        assert factor_match_score(truth, estimate, weights=True) == pytest.approx(
            one.score(two, weight_penalty=True)[0]
        )

    def test_mse_follows_from_the_congruence_of_tensorly(self, models):
        # Unit vectors: ||a - b||² = 2 - 2 cos, and TensorLy gives the mean of the best cosines.
        factors = pytest.importorskip("tensorly.metrics.factors")
        truth, estimate = models
        cosines = [
            factors.congruence_coefficient(a, b)[0]
            for a, b in zip(truth.factors, estimate.factors, strict=True)
        ]
        assert factor_mse(truth, estimate) == pytest.approx(2 - 2 * np.mean(cosines))

    def test_align_finds_the_permutation_of_tensorly(self, models):
        tl = pytest.importorskip("tensorly")
        truth, estimate = models
        permuted, _ = tl.cp_tensor.cp_permute_factors(truth.to_tensorly(), estimate.to_tensorly())
        for A, B in zip(estimate.align(truth).factors, permuted.factors, strict=True):
            np.testing.assert_allclose(unit(A), unit(B))
