"""Fits of sparse data, by every solver and sampler."""

import math

import numpy as np
import pytest
from pieces import CONSTRAINTS, LOSSES, MIRRORS, STEPS

import smartcpd
from smartcpd import CPModel, SmartCPD, SparseTensor, losses, metrics
from smartcpd._common.stacked import stack
from smartcpd._fitting.fit import fit
from smartcpd._methods.merging import merged_by_information
from smartcpd._methods.mixture import Mixture
from smartcpd.errors import IncompatibleError


def events(shape=(40, 30, 20), rank=3, count=6000, seed=0):
    """Every event draws a component, then its indices from the columns of that component."""
    rng = np.random.default_rng(seed)
    columns = [rng.gamma(0.3, size=(n, rank)) for n in shape]
    columns = [A / A.sum(axis=0) for A in columns]
    drawn = rng.multinomial(count, np.full(rank, 1 / rank))
    cells = np.concatenate(
        [
            np.stack([rng.choice(len(A), size=k, p=A[:, r]) for A in columns], axis=1)
            for r, k in enumerate(drawn)
        ]
    )
    factors = [A * (count / rank) ** (1 / len(shape)) for A in columns]
    return SparseTensor(cells, np.ones(count, np.uint8), shape), factors


def binary(X):
    """Whether anything happened."""
    return SparseTensor(X.indices, np.ones(X.nnz, np.uint8), X.shape)


X, TRUTH = events()
ORACLE = fit(X, 3, "poisson", solver="mm", init=TRUTH, tol=1e-4)


class TestCounts:
    def test_the_default_finds_what_was_planted(self):
        for seed in range(3):
            est = SmartCPD(3, "poisson", random_state=seed).fit(X)
            assert est.status_.converged
            assert est.loss_ <= ORACLE.loss * (1 + 5e-4)
            assert metrics.factor_match_score(est.model_, CPModel(TRUTH)) > 0.97

    @pytest.mark.parametrize("sampler", ["nonzeros", "nonempty", "nonzeros(300)"])
    def test_mirror_descent_comes_near(self, sampler):
        found = fit(X, 3, "poisson", solver="smd", sampler=sampler, max_epochs=60, random_state=0)
        assert found.loss < ORACLE.loss * 1.02

    def test_uniform_fibers_see_too_little(self):
        # The contrast that the other samplers exist for: as many entries, a worse model.
        one = fit(X, 3, "poisson", solver="smd", max_epochs=20, random_state=0)
        two = fit(X, 3, "poisson", solver="smd", sampler="uniform", max_epochs=40, random_state=0)
        assert two.history[-1].entries > one.history[-1].entries / 2
        assert one.loss < two.loss

    def test_the_same_loss_from_dense_data(self):
        found = fit(X, 3, "poisson", random_state=0)
        assert found.model.loss(X.to_dense()) == pytest.approx(found.loss, rel=1e-12)
        assert found.model.loss(X) == pytest.approx(found.loss, rel=1e-12)

    @pytest.mark.parametrize("solver", ["auto", "smd", "mm"])
    def test_threads_do_not_change_a_bit(self, solver):
        big, _ = events((300, 40, 30), count=20_000)
        one, two = (
            fit(big, 3, "poisson", solver=solver, n_threads=n, random_state=0, max_epochs=40)
            for n in (1, 2)
        )
        assert one.loss == two.loss
        for A, B in zip(one.model.factors, two.model.factors, strict=True):
            np.testing.assert_array_equal(A, B)

    def test_passes_never_raise_the_loss(self):
        found = fit(X, 3, "poisson", solver="mm", random_state=3)
        assert (np.diff(found.history["loss"]) <= 1e-12).all()

    @pytest.mark.slow
    def test_as_good_as_pyttb(self):
        ttb = pytest.importorskip("pyttb")
        X, _ = events((20, 15, 10), count=1500)
        start = fit(X, 3, "poisson", solver="mm", max_epochs=1, random_state=0).model
        guess = ttb.ktensor([np.array(A) for A in start.factors])
        data = ttb.sptensor(
            np.stack(X.indices, axis=1).astype(int), X.values[:, None].astype(float), X.shape
        )
        theirs, _, _ = ttb.cp_apr(data, 3, init=guess, printitn=0, maxiters=200)
        theirs = CPModel(theirs.factor_matrices, theirs.weights, "poisson").loss(X)
        ours = fit(X, 3, "poisson", init=start)
        assert ours.loss <= theirs * (1 + 1e-3)

    def test_a_start_given_by_the_user_is_where_it_starts(self):
        found = fit(X, 3, "poisson", init=TRUTH, max_epochs=1)
        assert found.history[0].loss == pytest.approx(
            CPModel(TRUTH, loss_function="poisson").loss(X), rel=1e-9
        )

    @pytest.mark.slow  # tensors of every order have compiled loops of their own
    def test_the_shapes_that_occur(self):
        for shape in ((5000, 4), (60, 50, 40), (30, 8, 7, 6), (9, 8, 7, 3, 4)):
            data, _ = events(shape, 2, 3000, seed=len(shape))
            assert np.isfinite(fit(data, 2, "poisson", random_state=0, max_epochs=30).loss)

    @pytest.mark.slow
    def test_more_cells_than_a_machine_integer_counts(self):
        data, _ = events((30, 20, 10, 10), 2, 500)
        far = [c.astype(np.int64) * 2003 for c in data.indices]
        huge = SparseTensor(tuple(far), data.values, (60_100,) * 4)
        assert math.prod(huge.shape) > 2**63
        for solver in ("auto", "smd"):
            found = fit(huge, 1, "poisson", solver=solver, max_epochs=3, random_state=0)
            assert all(np.isfinite(A).all() for A in found.model.factors)

    @pytest.mark.parametrize("solver", ["auto", "smd"])
    def test_nothing_happened(self, solver):
        empty = SparseTensor(np.empty((0, 3), int), np.empty(0), (5, 4, 3))
        found = fit(empty, 2, "poisson", solver=solver, max_epochs=20, random_state=0)
        assert found.loss == pytest.approx(0.0, abs=1e-3)

    def test_empty_slices_get_nothing(self):
        spread = SparseTensor((X.indices[0] * 2, *X.indices[1:]), X.values, (80, 30, 20))
        found = fit(spread, 3, "poisson", random_state=0)
        assert found.model.factors[0][1::2].max() < 1e-3 * found.model.factors[0].max()


class TestEvents:
    def test_yes_no_events(self):
        data = binary(X)
        start = [np.sqrt(0.9) * A for A in TRUTH]
        oracle = fit(data, 3, "bernoulli-odds", solver="mm", init=start, tol=1e-3)
        found = fit(data, 3, "bernoulli-odds", random_state=0)
        assert found.loss <= oracle.loss * 1.002
        assert found.model.loss(data.to_dense()) == pytest.approx(found.loss, rel=1e-9)

    def test_sampled_backgrounds_do_not_run_away(self):
        # A model that grows above 1 in whole blocks, where a falling line has no lower bound.
        rng = np.random.default_rng(0)
        X = np.zeros((60, 50, 40), np.uint8)
        for _ in range(4):
            block = np.ix_(*(rng.choice(n, n // 8, replace=False) for n in X.shape))
            X[block] = rng.random(X[block].shape) < 0.8
        data = SparseTensor(np.nonzero(X), X[np.nonzero(X)], X.shape)
        for seed in range(3):
            given = {"solver": "smd", "max_epochs": 40, "random_state": seed}
            found = fit(data, 4, "bernoulli-odds", **given)
            assert found.loss < found.history[0].loss
            narrow = [r.loss for r in found.history if "components" not in r.phase]
            assert 0 < found.loss <= min(narrow) * (1 + 1e-9)

    def test_the_background_of_large_tensors(self):
        # Large enough for hot cells in place of a pass over all of them.
        data = binary(events((400, 300, 80), 4, 30_000)[0])
        found = fit(data, 4, "bernoulli-odds", random_state=0)
        exact = found.model.loss_estimate(data)
        assert exact.error == 0
        assert found.history[-1].loss == pytest.approx(exact.loss, rel=1e-3)

    @pytest.mark.parametrize("loss", ["bernoulli-logit", "poisson-log", "huber(2)"])
    def test_a_large_signed_model_has_an_error(self, loss):
        rng = np.random.default_rng(0)
        shape = (500, 400, 300)
        data = SparseTensor(rng.integers(shape, size=(5000, 3)), 1, shape)
        data = binary(data)
        model = CPModel([0.3 * rng.standard_normal((n, 3)) for n in shape], loss_function=loss)
        found = model.loss_estimate(data)
        assert 0 < found.error < 0.05 * abs(found.loss)
        part = SparseTensor(rng.integers((50, 40, 30), size=(500, 3)), 1, (50, 40, 30))
        assert (
            CPModel(
                [A[:n] for A, n in zip(model.factors, (50, 40, 30), strict=True)],
                loss_function=loss,
            )
            .loss_estimate(binary(part))
            .error
            == 0
        )


class TestUnobserved:
    def test_only_what_was_observed_counts(self):
        rng = np.random.default_rng(0)
        factors = [rng.random((n, 2)) + 0.1 for n in (30, 25, 20)]
        full = rng.poisson(20 * CPModel(factors).full())
        seen = np.nonzero(rng.random(full.shape) < 0.4)
        data = SparseTensor(seen, full[seen], full.shape, absent="unobserved")
        assert data.nnz == seen[0].size
        found = fit(data, 2, "poisson", random_state=0, max_epochs=150)
        truth = CPModel([A * 20 ** (1 / 3) for A in factors], loss_function="poisson")
        assert found.loss <= truth.loss(data)
        assert metrics.factor_match_score(found.model, truth) > 0.98
        assert found.loss == pytest.approx(found.model.loss(data), rel=1e-12)

    def test_the_estimator_says_so_for_other_sparse_data(self):
        import scipy.sparse

        table = scipy.sparse.random_array((20, 15), density=0.3, rng=np.random.default_rng(0))
        est = SmartCPD(1, "gaussian", absent="unobserved", max_epochs=5, random_state=0).fit(table)
        assert est.model_.loss(table, "unobserved") == pytest.approx(est.loss_)
        whole = SmartCPD(1, "gaussian", max_epochs=5, random_state=0).fit(table)
        assert whole.loss_ != est.loss_


class TestEveryCombination:
    """Whatever works on dense data works on sparse data."""

    SMALL, _ = events((9, 8, 7), 2, 60)

    def run(self, loss="poisson", data=None, **choices):
        given = {"max_epochs": 3, "random_state": 0, "solver": "smd"} | choices
        found = fit(self.SMALL if data is None else data, 2, loss, **given)
        assert np.isfinite(found.loss)
        return found

    @pytest.mark.parametrize("name", [n for n in LOSSES if losses.get(n).allows_zeros])
    @pytest.mark.parametrize("sampler", ["nonzeros", "nonempty", "uniform"])
    def test_losses(self, name, sampler):
        data = binary(self.SMALL) if "bernoulli" in name else self.SMALL
        self.run(name, data, sampler=sampler)

    @pytest.mark.parametrize("name", CONSTRAINTS)
    def test_constraints(self, name):
        self.run("gaussian", constraint=name)

    @pytest.mark.parametrize("name", MIRRORS)
    def test_mirrors(self, name):
        self.run(mirror=name)

    @pytest.mark.parametrize("name", STEPS)
    @pytest.mark.parametrize("loss", ["poisson", "gaussian", "beta(1.5)"])
    def test_steps(self, name, loss):
        self.run(loss, step=name, constraint="nonnegative")

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float16, np.float32])
    def test_types(self, dtype, kind):
        values = np.minimum(self.SMALL.values, 1).astype(kind)
        data = SparseTensor(self.SMALL.indices, values, self.SMALL.shape)
        self.run("bernoulli-odds", data, dtype=dtype)

    def test_a_user_s_own_loss(self):
        own = losses.custom(lambda x, m: (x - m) ** 4, lambda x, m: -4.0 * (x - m) ** 3)
        self.run(own)

    def test_penalties_and_inner_iterations(self):
        self.run(constraint="sparsity(1e-4)", inner_iterations=3)


class TestRefusals:
    @pytest.mark.parametrize(
        "choices",
        [
            {"loss": "gaussian"},
            {"loss": "poisson", "constraint": "box(0, 1)"},
        ],
    )
    def test_multiplicative_updates_say_what_they_serve(self, choices):
        with pytest.raises(IncompatibleError, match="Multiplicative updates serve"):
            smartcpd.decompose(X, 2, solver="mm", **choices)

    def test_online_needs_nonzeros(self):
        with pytest.raises(IncompatibleError, match="sparse"):
            smartcpd.decompose(np.ones((3, 3, 3)), 1, "poisson", solver="sparse")


class TestEnding:
    def test_limits_and_callbacks(self):
        assert "max_epochs=5" in fit(X, 3, "poisson", max_epochs=5, random_state=0).status.reason
        stopped = fit(X, 3, "poisson", callback=lambda report: report.record.epoch > 3)
        assert "callback" in stopped.status.reason
        assert stopped.model.rank == 3
        assert "max_time" in fit(X, 3, "poisson", max_time=0.001, random_state=0).status.reason

    def test_ctrl_c(self):
        def interrupt(report):
            if report.record.epoch > 8:
                raise KeyboardInterrupt

        found = fit(X, 3, "poisson", callback=interrupt, random_state=0)
        assert found.status.interrupted
        assert np.isfinite(found.loss)

    def test_the_history_says_where_each_row_belongs(self):
        phases = list(fit(X, 3, "poisson", random_state=0).history["phase"])
        assert phases[0] == "start"
        assert phases[-2:] == ["finish", "rows"]


def test_merging_keeps_what_is_different():
    rng = np.random.default_rng(0)
    shape = (30, 20)
    columns = [rng.gamma(0.2, size=(n, 3)) for n in shape]
    doubled = [np.concatenate([A, A[:, :1], A[:, 1:2]], axis=1) for A in columns]
    merged = merged_by_information(Mixture.of(stack(doubled), shape), 3)
    expected = Mixture.of(stack(columns), shape)
    found = np.array(sorted(merged.columns.T.tolist()))
    np.testing.assert_allclose(found, np.array(sorted(expected.columns.T.tolist())), atol=1e-12)
    assert merged.weights.sum() == pytest.approx(
        expected.weights.sum() + expected.weights[:2].sum()
    )
