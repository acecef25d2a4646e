"""The choice of rank and loss, from scores to words."""

import dataclasses
import json

import numpy as np
import pytest

import smartcpd
from smartcpd import SparseTensor, datasets, metrics
from smartcpd._inference.selection.scores import mean_over
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

SHAPE = (24, 20, 18)


def counts(rank=2, seed=0):
    return datasets.count(SHAPE, rank, a_max=1.2, random_state=seed).data


@pytest.fixture(scope="module", name="X")
def data():
    return counts()


@pytest.fixture(scope="module")
def found(X):
    return smartcpd.select(X, ranks=range(1, 5), cv=3, n_restarts=2, random_state=0)


class TestCrossValidate:
    def test_the_better_rank_is_better(self, X):
        one, two, three = (
            smartcpd.cross_validate(X, r, "poisson", cv=3, random_state=0) for r in (1, 2, 3)
        )
        assert two.deviance < one.deviance
        assert two.log_likelihood > one.log_likelihood
        gain = two.compare(one)
        assert gain.value > 3 * gain.error
        assert gain.value == pytest.approx(two.log_likelihood - one.log_likelihood)
        assert two.compare(three).error < 0.7 * two.log_likelihood_error
        assert len(two.folds) == len(two.models) == 3

    def test_the_same_bits_for_any_number_of_jobs(self, X):
        runs = [
            smartcpd.cross_validate(X, 2, "poisson", cv=3, random_state=1, n_jobs=n).log_likelihood
            for n in (1, 2)
        ]
        assert runs[0] == runs[1]

    def test_values_of_held_out_cells_do_not_leak(self, X):
        """A fold's model is the same whatever its held-out cells hold."""
        one = smartcpd.cross_validate(X, 2, "poisson", cv=3, random_state=0)
        changed = X.copy()
        places = tuple(one.scores[0].fold.places)
        changed[places] = 3
        two = smartcpd.cross_validate(changed, 2, "poisson", cv=3, random_state=0)
        pairs = zip(one.models[0].factors, two.models[0].factors, strict=True)
        assert all(np.array_equal(A, B) for A, B in pairs)

    def test_sparse_scores_are_those_of_dense(self):
        X = datasets.count(SHAPE, 2, a_max=0.7, random_state=3).data
        sparse = SparseTensor(np.argwhere(X), X[X > 0], X.shape)
        one = smartcpd.cross_validate(X, 2, "poisson", cv=3, random_state=0)
        two = smartcpd.cross_validate(sparse, 2, "poisson", cv=3, random_state=0)
        error = np.hypot(one.log_likelihood_error, two.log_likelihood_error)
        assert abs(one.log_likelihood - two.log_likelihood) < 3 * error

    @pytest.mark.parametrize("absent", ["zero", "unobserved"])
    def test_fibers_of_a_sparse_tensor(self, X, absent):
        sparse = SparseTensor(np.argwhere(X), X[X > 0], X.shape, absent)
        scores = smartcpd.cross_validate(
            sparse, 1, "poisson", cv=2, holdout="fibers", fiber_mode=2, random_state=0
        )
        assert np.isfinite(scores.deviance)
        assert scores.deviance_error > 0

    def test_r_is_estimated(self):
        rng = np.random.default_rng(0)
        _, factors = datasets.count(SHAPE, 2, a_max=1.2, random_state=0)
        m = np.einsum("ir,jr,kr->ijk", *factors)
        X = rng.negative_binomial(1.5, 1.5 / (1.5 + m))
        scores = smartcpd.cross_validate(X, 2, "negative-binomial", cv=2, random_state=0)
        assert all(1.0 < model.loss_function.r < 2.5 for model in scores.models)
        plain = smartcpd.cross_validate(X, 2, "poisson", cv=2, random_state=0)
        gain = scores.compare(plain)
        assert gain.value > 3 * gain.error

    def test_losses_without_a_distribution_have_deviances(self):
        X = np.where(counts() > 0, counts() + 0.5, 0.0)
        scores = smartcpd.cross_validate(X, 1, "poisson", cv=2, random_state=0)
        assert np.isnan(scores.log_likelihood)
        assert scores.deviance > 0
        assert "log-likelihood" not in str(scores)

    def test_only_the_same_cells_are_compared(self, X):
        one, two = (smartcpd.cross_validate(X, 1, "poisson", cv=2, random_state=s) for s in (0, 1))
        with pytest.raises(IncompatibleError, match="same held-out cells"):
            one.compare(two)

    def test_refusals(self, X):
        with pytest.raises(InvalidParameterError, match="rank"):
            smartcpd.cross_validate(X, 0, "poisson")
        with pytest.raises(InvalidParameterError, match="n_jobs"):
            smartcpd.cross_validate(X, 1, "poisson", n_jobs=0)
        with pytest.raises(InvalidParameterError, match="'ranc' is no parameter"):
            smartcpd.cross_validate(X, 1, "poisson", ranc=3)
        with pytest.raises(IncompatibleError, match="checkpoint= is for one fit"):
            smartcpd.cross_validate(X, 1, "poisson", checkpoint="here")
        with pytest.raises(IncompatibleError, match="init="):
            smartcpd.cross_validate(X, 1, "poisson", init=[np.ones((n, 1)) for n in SHAPE])
        with pytest.raises(InvalidDataError, match="0 or 1"):
            smartcpd.cross_validate(X + 1, 1, "bernoulli-odds")


class TestSelect:
    def test_the_rank_is_found(self, X, found):
        assert found.rank == 2
        assert str(found.loss) == "poisson"
        assert found.model.shape == X.shape
        assert found.model.rank == 2

    def test_only_hopeless_lower_ranks_are_fitted_to_fewer_folds(self, found):
        chosen = next(row for row in found.rows if row.chosen)
        best = next(row for row in found.rows if row.behind == row.behind_error == 0)
        assert chosen.folds == best.folds == 3
        for row in found.rows:
            lower = row.loss == chosen.loss and row.rank < chosen.rank
            assert row.folds == 3 or not lower or row.behind > 4 * row.behind_error

    def test_ranks_that_do_not_help_end_the_walk(self, X):
        found = smartcpd.select(X, ranks=range(1, 40), losses="poisson", cv=2, n_restarts=1)
        assert max(row.rank for row in found.rows) == found.rank + 3

    def test_restarts_agree(self, found):
        row = next(row for row in found.rows if row.chosen)
        assert row.replicability > 0.95
        assert row.core_consistency > 80

    def test_how_far_below_zero_a_core_consistency_is_says_nothing(self, found):
        rows = [dataclasses.replace(row, core_consistency=-5375.0) for row in found.rows]
        text = str(dataclasses.replace(found, rows=rows))
        assert "below 0" in text
        assert "5375" not in text

    def test_words(self, found):
        assert found.recommendation.startswith("Use rank 2 with loss poisson: ")
        assert found.recommendation.count(". ") == 0
        assert found.recommendation in str(found)
        assert "->  poisson     2" in str(found)
        assert "Use rank 2 with loss poisson" in found._repr_html_()

    def test_plain_values(self, found):
        assert json.loads(json.dumps(found.table))[1]["rank"] == 2
        assert list(found.to_frame()["rank"]) == [row["rank"] for row in found.table]

    def test_a_picture(self, found):
        plt = pytest.importorskip("matplotlib.pyplot")
        ax = found.plot()
        assert ax.get_xlabel() == "rank"
        plt.close(ax.figure)

    def test_the_same_bits_for_any_number_of_jobs(self, X):
        runs = [
            smartcpd.select(
                X, [1, 2], ["poisson", "gaussian"], cv=2, n_restarts=1, random_state=0, n_jobs=n
            )
            for n in (1, 2)
        ]
        first, second = (
            [(r.loss, r.rank, r.behind, r.behind_error) for r in run.rows] for run in runs
        )
        assert first == second
        assert np.array_equal(runs[0].model.factors[0], runs[1].model.factors[0])

    def test_labels_are_kept(self, X):
        modes = [smartcpd.Mode(name, np.arange(n)) for name, n in zip("abc", SHAPE, strict=True)]
        tensor = smartcpd.LabelledTensor(X, tuple(modes))
        found = smartcpd.select(
            tensor, [2], "poisson", cv=2, holdout="fibers", fiber_mode="b", n_restarts=1
        )
        assert found.model.modes == tuple(modes)
        assert "all that was tried" in found.recommendation

    def test_overdispersed_counts(self):
        rng = np.random.default_rng(0)
        _, factors = datasets.count(SHAPE, 2, a_max=1.5, random_state=0)
        m = np.einsum("ir,jr,kr->ijk", *factors)
        X = rng.negative_binomial(1.0, 1.0 / (1.0 + m))
        found = smartcpd.select(X, [1, 2, 3], cv=3, n_restarts=1, random_state=0)
        assert found.loss.name == "negative-binomial"
        assert found.rank <= 2
        assert found.loss.r == pytest.approx(1.0, rel=0.3)

    def test_missing_cells_and_weights(self, X):
        mask = np.random.default_rng(0).random(X.shape) < 0.7
        spoilt = np.where(mask, X, 200)
        found = [
            smartcpd.select(data, [1, 2], "poisson", mask=mask, cv=3, n_restarts=1, random_state=0)
            for data in (X, spoilt)
        ]
        assert found[0].rank == 2
        one, two = (each.table[0]["deviance"] for each in found)
        assert one == pytest.approx(two, rel=1e-13)

    def test_unobserved_cells(self, X):
        mask = np.random.default_rng(0).random(X.shape) < 0.7
        sparse = SparseTensor(np.argwhere(mask), X[mask], X.shape, "unobserved")
        found = smartcpd.select(sparse, [1, 2], "poisson", cv=3, n_restarts=1, random_state=0)
        assert found.rank == 2

    def test_the_last_rank_is_no_end(self):
        found = smartcpd.select(counts(3), [1, 2], "poisson", cv=2, n_restarts=1, random_state=0)
        assert "higher ones may be better" in found.recommendation

    def test_refusals(self, X):
        with pytest.raises(InvalidParameterError, match="ranks is empty"):
            smartcpd.select(X, [])
        with pytest.raises(InvalidParameterError, match="Each of ranks"):
            smartcpd.select(X, [0, 1])
        with pytest.raises(InvalidParameterError, match="losses is empty"):
            smartcpd.select(X, losses=[])
        with pytest.raises(IncompatibleError, match="no probability"):
            smartcpd.select(X + 0.5, losses=["gamma", "poisson"])
        with pytest.raises(InvalidParameterError, match="n_restarts"):
            smartcpd.select(X, n_restarts=0)


class TestErrors:
    def test_of_a_mean(self):
        """The standard error is that of means of independent cells."""
        rng = np.random.default_rng(0)
        from smartcpd._inference.selection.folds import Fold

        means = []
        for _ in range(300):
            parts = [rng.standard_normal(50) for _ in range(2)]
            parts_of = [Fold(None, [], p, np.ones(50)) for p in parts]
            means.append(mean_over(parts, parts_of))
        spread = np.std([m.value for m in means])
        assert np.mean([m.error for m in means]) == pytest.approx(spread, rel=0.15)


class TestCoreConsistency:
    @pytest.mark.slow
    def test_high_for_the_right_rank_only(self):
        X, truth = datasets.gaussian((20, 18, 16), 2, snr=20.0, nonnegative=False, random_state=0)
        right, *wrong = (
            metrics.core_consistency(smartcpd.decompose(X, r, random_state=0), X)
            for r in (2, 6, 8, 10)
        )
        assert right > 90
        # One or two components of noise may keep apart from the others, many cannot.
        assert np.median(wrong) < 70
        assert metrics.core_consistency(smartcpd.CPModel(truth), X) <= 100

    def test_missing_cells_are_as_the_model_has_them(self):
        X, truth = datasets.gaussian((20, 18, 16), 2, snr=60.0, random_state=0)
        mask = np.random.default_rng(0).random(X.shape) < 0.8
        spoilt = np.where(mask, X, 1e3)
        model = smartcpd.CPModel(truth)
        assert metrics.core_consistency(model, spoilt, mask=mask) > 99

    def test_refusals(self):
        X = counts()
        model = smartcpd.CPModel([np.ones((n, 1)) for n in SHAPE], loss_function="bernoulli-odds")
        with pytest.raises(IncompatibleError, match="Core consistency"):
            metrics.core_consistency(model, X)
