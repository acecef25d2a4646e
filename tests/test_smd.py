"""Fits by stochastic mirror descent: what they find, that they repeat, and how they end."""

import math
from functools import partial

import numpy as np
import pytest

from smartcpd import datasets, losses
from smartcpd._fitting import fit as fitting
from smartcpd._fitting.model import CPModel
from smartcpd._methods.smd_phase import Sweeper
from smartcpd._problem.history import Record
from smartcpd.errors import DivergedError, InvalidParameterError
from smartcpd.metrics import factor_mse

fit = partial(fitting.fit, solver="smd")
TINY = datasets.count((9, 8, 7), 2, a_max=1.5, random_state=0).data
QUICK = {"max_epochs": 5, "tol": 0.0, "random_state": 0, "overcomplete": 1.0}


def same_bits(one, two):
    pairs = zip(one.model.factors, two.model.factors, strict=True)
    return one.loss == two.loss and all(np.array_equal(A, B) for A, B in pairs)


class TestRecovery:
    """Planted factors come back, as well as the noise allows."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("planted", "loss", "bound"),
        [
            # Bounds are about a third above what the minimiser nearest to the truth has.
            (datasets.count((40, 40, 40), 4, random_state=0), "poisson", 0.016),
            (datasets.binary((30, 30, 30), 2, a_max=0.8, random_state=0), "bernoulli-odds", 0.011),
            (datasets.gamma((40, 40, 40), 3, random_state=0), "gamma", 0.002),
            (
                datasets.gaussian((30, 30, 30), 3, nonnegative=False, random_state=0),
                "gaussian",
                1e-6,
            ),
            (datasets.count((15, 14, 13, 12), 3, random_state=0), "poisson", 0.006),
        ],
        ids=["count", "binary", "gamma", "gaussian signed", "count of order 4"],
    )
    def test_factors(self, planted, loss, bound):
        rank = planted.factors[0].shape[1]
        result = fit(planted.data, rank, loss, random_state=1, max_epochs=1000)
        assert factor_mse(result.model.factors, planted.factors) < bound

    @pytest.mark.slow
    @pytest.mark.parametrize("shape", [(60, 50), (25, 20, 15), (9, 8, 7, 6), (9, 8, 8, 7, 7)])
    def test_the_fit_is_better_than_the_truth_at_any_order(self, shape):
        X, factors = datasets.count(shape, 2, a_max=1.5, random_state=0)
        truth = CPModel(factors, loss_function="poisson")
        result = fit(X, 2, "poisson", random_state=0, n_init=2)
        assert result.loss < truth.loss(X)

    def test_simplex_without_noise(self):
        X, factors = datasets.simplex((20, 20, 20), 3, random_state=0)
        result = fit(X, 3, "poisson", constraint="simplex", max_epochs=500, random_state=0)
        assert factor_mse(result.model.factors, factors) < 1e-6
        for A in result.model.factors:
            np.testing.assert_allclose(A.sum(axis=0), 1, rtol=1e-9)

    @pytest.mark.parametrize("change", [{"averaging": False}, {"dtype": "float32"}])
    @pytest.mark.parametrize("step", ["adagrad", "jensen"])
    def test_variants_come_close_to_the_default(self, change, step):
        X, _ = datasets.count((20, 20, 20), 2, a_max=1.5, random_state=0)
        given = {"step": step, "max_epochs": 200, "n_fibers": 40, "random_state": 0}
        default, result = (fit(X, 2, "poisson", **given, **c) for c in ({}, change))
        gain = default.history[0].loss - default.loss
        assert result.loss < default.loss + 0.02 * gain
        assert all(A.dtype == np.float64 for A in result.model.factors)


class TestRepeats:
    def test_the_same_seed_gives_the_same_bits(self):
        assert same_bits(*(fit(TINY, 2, "poisson", **QUICK) for _ in range(2)))

    def test_another_seed_gives_another_fit(self):
        other = fit(TINY, 2, "poisson", **QUICK | {"random_state": 1})
        assert not same_bits(fit(TINY, 2, "poisson", **QUICK), other)

    def test_a_generator_is_a_seed(self):
        generator = np.random.default_rng(0)
        result = fit(TINY, 2, "poisson", **QUICK | {"random_state": generator})
        assert same_bits(result, fit(TINY, 2, "poisson", **QUICK))

    @pytest.mark.parametrize("loss", ["poisson", "gamma"])
    def test_restarts_side_by_side_give_the_same_bits(self, loss):
        one, two = (fit(TINY, 2, loss, **QUICK, n_init=3, n_jobs=n) for n in (1, 2))
        assert same_bits(one, two)

    def test_nothing_touches_the_global_random_state(self):
        before = np.random.get_state()[1].tobytes()  # noqa: NPY002
        fit(TINY, 2, "poisson", **QUICK)
        assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002

    def test_a_callback_changes_nothing(self):
        watched = fit(TINY, 2, "poisson", **QUICK, callback=lambda report: report.model() is None)
        assert same_bits(watched, fit(TINY, 2, "poisson", **QUICK))


class TestRestarts:
    def test_the_lowest_loss_is_kept(self):
        runs = []

        def watch(report):
            if report.record.epoch == 0:
                runs.append([])
            runs[-1].append(report.record.loss)

        result = fit(TINY, 2, "poisson", **QUICK, n_init=4, callback=watch)
        assert len(runs) == 4
        best = min(min(run) for run in runs)
        assert result.loss == pytest.approx(best, rel=1e-12)
        assert result.history["loss"].min() == pytest.approx(best, rel=1e-12)
        assert len({min(run) for run in runs}) > 1


class TestInit:
    START = [np.random.default_rng(5).uniform(0.5, 1.5, (n, 2)) for n in TINY.shape]

    @pytest.mark.parametrize(
        "init", [START, CPModel(START), tuple(START), [A.tolist() for A in START]]
    )
    def test_a_fit_starts_where_it_is_told_to(self, init):
        start = CPModel(self.START, loss_function="poisson")
        result = fit(TINY, 2, "poisson", **QUICK, init=init)
        assert result.history[0].loss == pytest.approx(start.loss(TINY), rel=1e-12)
        assert result.loss < result.history[0].loss

    def test_weights_of_a_model_count(self):
        model = CPModel(self.START, weights=[3.0, 0.5], loss_function="poisson")
        result = fit(TINY, 2, "poisson", **QUICK, init=model)
        assert result.history[0].loss == pytest.approx(model.loss(TINY), rel=1e-12)

    def test_what_was_given_is_not_changed(self):
        given = [A.copy() for A in self.START]
        fit(TINY, 2, "poisson", **QUICK, init=given)
        for A, B in zip(given, self.START, strict=True):
            np.testing.assert_array_equal(A, B)

    def test_a_start_outside_the_constraint_is_projected(self):
        result = fit(TINY, 2, "poisson", **QUICK, init=self.START, constraint="simplex")
        assert math.isfinite(result.history[0].loss)
        np.testing.assert_allclose(result.model.factors[0].sum(axis=0), 1)

    @pytest.mark.parametrize(
        ("init", "message"),
        [
            (START[:2], r"\(9, 2\), \(8, 2\).*needs .*\(7, 2\)"),
            ([A[:, :1] for A in START], r"\(9, 1\).*needs .*\(9, 2\)"),
            (START[::-1], "shapes"),
            ([START[0], START[1], np.full((7, 2), np.nan)], "NaN or infinity .* mode 2"),
            ("svd", "init must be one of 'random'"),
        ],
    )
    def test_wrong_shapes_and_values_are_refused(self, init, message):
        with pytest.raises(InvalidParameterError, match=message):
            fit(TINY, 2, "poisson", **QUICK, init=init)


class TestEnds:
    """Every fit says why it stopped."""

    def test_max_epochs(self):
        result = fit(TINY, 2, "poisson", **QUICK)
        assert "max_epochs=5" in result.status.reason
        assert not result.status.converged
        assert list(result.history["epoch"]) == [0, 1, 2, 3, 4, 5]

    def test_max_time(self):
        result = fit(TINY, 2, "poisson", max_epochs=10**9, max_time=0.05, tol=0.0, random_state=0)
        assert "max_time=0.05" in result.status.reason
        assert not result.status.converged

    def test_tol(self):
        result = fit(TINY, 2, "poisson", tol=1.0, random_state=0)
        assert result.status.converged
        assert "tol=1" in result.status.reason
        assert str(result.status) == result.status.reason

    def test_a_fit_that_only_gets_worse_has_not_converged(self):
        X, _ = datasets.count((20, 20, 20), 2, a_max=1.5, random_state=0)
        # Four fibers a batch are too few for Jensen steps on data with two zeros in five cells.
        result = fit(X, 2, "poisson", step="jensen", n_fibers=4, random_state=0, max_epochs=50)
        assert result.loss < result.history[0].loss or not result.status.converged

    def test_kkt_tol(self):
        X, _ = datasets.gaussian((12, 11, 10), 2, snr=10, random_state=0)
        result = fit(X, 2, tol=0.0, kkt_tol=0.02, random_state=0, max_epochs=5000)
        assert result.status.converged
        assert "KKT" in result.status.reason

    def test_the_callback_sees_every_epoch_and_can_stop(self):
        seen = []

        def watch(report):
            assert report.model().shape == TINY.shape
            seen.append(report.record)
            return report.record.epoch == 3

        result = fit(TINY, 2, "poisson", random_state=0, callback=watch)
        assert [record.epoch for record in seen] == [0, 1, 2, 3]
        assert list(result.history) == seen
        assert "callback" in result.status.reason
        assert "epoch 3" in result.status.reason

    def test_the_model_of_a_report_has_its_loss(self):
        def watch(report):
            assert report.model().loss(TINY) == pytest.approx(report.record.loss, rel=1e-12)

        fit(TINY, 2, "poisson", **QUICK, callback=watch)

    def test_an_error_in_the_callback_is_not_swallowed(self):
        def broken(report):
            raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            fit(TINY, 2, "poisson", **QUICK, callback=broken)

    def test_an_interrupt_returns_the_best_model(self):
        def interrupt(report):
            if report.record.epoch == 4:
                raise KeyboardInterrupt

        result = fit(TINY, 2, "poisson", random_state=0, callback=interrupt, overcomplete=1)
        assert "Interrupted at epoch 4" in result.status.reason
        assert not result.status.converged
        assert result.loss == pytest.approx(result.history["loss"].min(), rel=1e-12)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize(
        ("loss", "choices"),
        [
            ("poisson-log", {"step": "constant(1e6)"}),
            ("gaussian", {"step": "constant(1e6)"}),
            ("poisson", {"step": "constant(1e9)", "mirror": "quadratic"}),
            ("poisson", {"step": "constant(1e9)", "mirror": "burg"}),
            ("gamma", {"step": "constant(1e9)", "mirror": "power(-1)"}),
        ],
    )
    def test_steps_that_are_far_too_long_never_return_nan(self, loss, choices, dtype):
        result = fit(TINY, 2, loss, **QUICK, **choices, dtype=dtype)
        assert math.isfinite(result.loss)
        assert all(np.isfinite(A).all() for A in result.model.factors)
        assert result.loss <= result.history[0].loss

    def test_divergence_is_reported_with_advice(self):
        result = fit(TINY, 2, "poisson-log", **QUICK, step="constant(1e6)")
        assert "Diverged" in result.status.reason
        assert "step='adagrad'" in result.status.reason
        assert not result.status.converged

    def test_a_start_without_a_finite_loss_is_an_error(self):
        huge = [np.full((n, 2), 1e3) for n in TINY.shape]
        with pytest.raises(DivergedError, match="not finite at the start"):
            fit(TINY, 2, "poisson-log", **QUICK, init=huge)


class TestOvercompleteStarts:
    """Starts with more components than the rank, merged after some epochs."""

    def test_the_history_names_the_wide_phase_and_the_model_has_the_rank(self):
        result = fit(TINY, 2, "poisson", random_state=0, max_epochs=20, tol=0, overcomplete=2)
        phases = list(result.history["phase"])
        assert phases[1:6] == ["adagrad, 4 components"] * 5
        assert phases[6:] == ["adagrad"] * 15
        assert result.model.rank == 2

    def test_an_interrupt_in_the_wide_phase_returns_a_model_of_the_rank(self):
        def interrupt(report):
            if report.record.epoch == 3:
                raise KeyboardInterrupt

        result = fit(TINY, 2, "poisson", random_state=0, callback=interrupt)
        assert result.model.rank == 2
        assert math.isfinite(result.loss)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_divergence_in_the_wide_phase_leaves_finite_factors(self, dtype):
        choices = {"step": "constant(1e6)", "random_state": 0, "dtype": dtype}
        result = fit(TINY, 2, "poisson-log", **choices)
        assert "Diverged" in result.status.reason
        assert math.isfinite(result.loss)

    def test_a_users_start_may_be_overcomplete(self):
        start = [np.random.default_rng(0).random((n, 5)) for n in TINY.shape]
        result = fit(TINY, 2, "poisson", random_state=0, init=start)
        assert result.model.rank == 2

    def test_columns_on_a_simplex_cannot_shrink_and_start_at_the_rank(self):
        X, _ = datasets.simplex((9, 8, 7), 2, random_state=0)
        result = fit(X, 2, "poisson", random_state=0, constraint="simplex", max_epochs=4)
        assert set(result.history["phase"]) == {"adagrad"}

    def test_less_than_the_rank_is_refused(self):
        with pytest.raises(InvalidParameterError, match="overcomplete must be a finite number"):
            fit(TINY, 2, "poisson", overcomplete=0.5)


class TestHistory:
    def test_columns(self):
        history = fit(TINY, 2, "poisson", **QUICK, constraint="sparsity(0.01)").history
        for name in Record._fields:
            assert len(history[name]) == 6
        assert (np.diff(history["time"]) >= 0).all()
        assert (np.diff(history["entries"]) > 0).all()
        assert history["entries"][0] == 0
        assert (history["penalty"] > 0).all()
        np.testing.assert_array_equal(history.objective, history["loss"] + history["penalty"])
        with pytest.raises(KeyError, match=r"No column 'los'; columns: time"):
            history["los"]

    def test_an_epoch_samples_about_as_many_entries_as_there_are(self):
        X, _ = datasets.count((30, 30, 30), 2, random_state=0)
        history = fit(X, 2, "poisson", **QUICK).history
        np.testing.assert_allclose(np.diff(history["entries"]), X.size, rtol=0.05)

    def test_the_loss_of_the_model_is_the_best_of_the_history(self):
        result = fit(TINY, 2, "poisson", **QUICK)
        assert result.loss == pytest.approx(result.history["loss"].min(), rel=1e-12)
        assert result.loss == pytest.approx(result.model.loss(TINY), rel=1e-12)

    def test_with_penalties_the_best_objective_counts(self):
        X = np.random.default_rng(0).normal(size=(6, 5, 4))
        result = fit(X, 2, **QUICK, constraint="sparsity(0.05)")
        penalty = 0.05 * sum(np.abs(A).sum() for A in result.model.factors)
        assert result.loss + penalty == pytest.approx(result.history.objective.min(), rel=1e-9)

    def test_the_loss_of_a_large_tensor_is_over_all_cells(self):
        X, _ = datasets.count((80, 70, 60), 2, random_state=0)
        result = fit(X, 2, "poisson", **QUICK | {"max_epochs": 2})
        assert result.loss == pytest.approx(result.model.loss(X), rel=1e-12)
        # The history's is that of a sample, close but not the same.
        assert result.history[-1].loss == pytest.approx(result.loss, rel=0.05)
        assert result.history[-1].loss != result.loss

    def test_change_tol_ends_a_fit_by_the_relative_change_of_an_epoch(self):
        X, _ = datasets.count((12, 11, 10), 2, random_state=0)
        result = fit(X, 2, "poisson", random_state=0, change_tol=1e-2, tol=0, overcomplete=1)
        changes = np.abs(np.diff(result.history["loss"])) / np.abs(result.history["loss"][:-1])
        assert changes[-1] < 1e-2 <= changes[:-1].min()
        assert "change_tol=0.01" in result.status.reason

    @pytest.mark.parametrize("times", [2, 3])
    def test_inner_iterations_on_fresh_fibers_keep_to_a_mode(self, times, monkeypatch):
        drawn, run = [], Sweeper.run
        monkeypatch.setattr(
            Sweeper, "run", lambda self, draws, A: (drawn.append(draws), run(self, draws, A))
        )
        kept = {"inner_iterations": times, "fresh_fibers": True}
        fit(TINY, 2, "poisson", **QUICK | kept)
        modes, fibers = drawn[-1].modes, drawn[-1].fibers
        blocks = modes[: modes.size // times * times].reshape(-1, times)
        assert (blocks == blocks[:, :1]).all()
        assert (np.diff(blocks[:, 0]) != 0).any()
        assert any((fibers[0] != other).any() for other in fibers[1:times])

    def test_mixed_steps_change_over_before_surplus_components_are_merged(self):
        X = datasets.gamma((20, 20, 20), 2, random_state=0).data
        result = fit(X, 2, "gamma", random_state=0, step="mixed(0.01)", overcomplete=2)
        names = list(dict.fromkeys(result.history["phase"]))
        wide = ["jensen, 4 components", "adagrad, 4 components"]
        assert names == ["jensen", *wide, "adagrad"]

    def test_mixed_steps_change_over(self):
        X, _ = datasets.gamma((12, 11, 10), 2, random_state=0)
        result = fit(X, 2, "gamma", random_state=0, step="mixed(0.01)", overcomplete=1)
        phases = list(result.history["phase"])
        assert set(phases) == {"jensen", "adagrad"}
        assert phases == sorted(phases, reverse=True)

    def test_no_phase_loses_what_an_earlier_one_found(self):
        truth = CPModel([np.random.default_rng(2).random((n, 2)) for n in (20, 18, 16)])
        X = losses.get("gamma").simulate(truth.full(), np.random.default_rng(2))
        result = fit(X, 2, "gamma", random_state=0, step="mixed", overcomplete=1, max_epochs=60)
        assert "adagrad" in list(result.history["phase"])
        assert result.loss <= min(result.history["loss"]) + 1e-9


class TestProgress:
    def test_silent_when_nobody_watches(self, capsys):
        fit(TINY, 2, "poisson", **QUICK)
        captured = capsys.readouterr()
        assert captured.out == ""
        assert [line for line in captured.err.splitlines() if "compiling" not in line] == []

    def test_a_bar_never_goes_to_standard_output(self, capsys):
        fit(TINY, 2, "poisson", **QUICK, progress=True)
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize("change", [{"inner_iterations": 3}, {"n_fibers": 1}, {"n_fibers": 200}])
def test_batches_of_any_size_improve_the_model(change):
    result = fit(TINY, 2, "poisson", **QUICK, **change)
    assert result.loss < result.history[0].loss


def test_a_rank_above_the_sizes_works():
    result = fit(TINY, 12, "poisson", **QUICK)
    assert result.loss < result.history[0].loss


class TestStructure:
    """What a constraint promises holds for the factors that are returned, averaged or not."""

    @pytest.mark.parametrize("averaging", [True, False])
    def test_one_peak(self, averaging):
        X = np.random.default_rng(0).poisson(1.0, (20, 6, 5))
        choices = {"constraint": {0: "unimodal"}, "averaging": averaging, "random_state": 0}
        A = fit(X, 3, "poisson", max_epochs=20, **choices).model.factors[0]
        for column in A.T:
            peak = int(column.argmax())
            assert (np.diff(column[: peak + 1]) >= 0).all()
            assert (np.diff(column[peak:]) <= 0).all()

    def test_sparse_factors_have_exact_zeros(self):
        X, _ = datasets.gaussian((20, 15, 10), 2, nonnegative=False, snr=20, random_state=0)
        X[:5] = 0
        A = fit(X, 2, constraint="sparsity(1e-3)", random_state=0).model.factors[0]
        assert (A[:5] == 0).all()
        assert (A != 0).any()


class TestWhatUsersMeet:
    @pytest.mark.slow
    @pytest.mark.parametrize("step", ["auto", "mixed"])
    @pytest.mark.parametrize("loss", ["gamma", "rayleigh"])
    def test_noisy_positive_data_is_fitted_as_well_as_the_truth_fits_it(self, loss, step):
        rng = np.random.default_rng(0)
        truth = CPModel([rng.random((n, 2)) for n in (20, 18, 16)], loss_function=loss)
        X = truth.loss_function.simulate(truth.full(), rng)
        # Jensen steps leave some starts in poor places; the paper's full adagrad steps, which
        # follow, settle slowly on a tensor this small.
        slack, n_init = (0.05, 4) if step == "mixed" else (0.0, 1)
        result = fit(X, 2, loss, step=step, n_init=n_init, random_state=0, max_epochs=300)
        assert result.loss <= truth.loss(X) + slack

    def test_an_interrupt_skips_the_starts_that_wait(self):
        starts = []

        def interrupt(report):
            if report.record.epoch == 0:
                starts.append(report)
            if report.record.epoch == 2:
                raise KeyboardInterrupt

        result = fit(TINY, 2, "poisson", random_state=0, n_init=3, callback=interrupt)
        assert len(starts) == 1
        assert result.status.interrupted

    def test_an_absolute_error_has_no_curvature_and_still_gets_its_time(self):
        absolute = losses.custom(
            lambda x, m: abs(x - m), lambda x, m: 1.0 if m > x else -1.0, name="absolute"
        )
        result = fit(TINY, 2, absolute, random_state=0)
        assert result.history[-1].epoch > 30
        assert result.loss < 0.9 * np.abs(TINY - np.median(TINY)).mean()

    @pytest.mark.parametrize("seed", range(3))
    def test_rare_events_under_a_log_link_end_below_the_constant_model(self, seed):
        X = np.random.default_rng(0).poisson(0.02, (20, 20, 20))
        constant = X.mean() - X.mean() * math.log(X.mean())
        assert fit(X, 2, "poisson-log", random_state=seed, max_epochs=300).loss < constant

    def test_a_legacy_random_state_is_accepted(self):
        states = [np.random.RandomState(0) for _ in range(2)]
        one, two = (fit(TINY, 2, "poisson", **QUICK | {"random_state": s}) for s in states)
        assert same_bits(one, two)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"tol": float("nan")},
            {"tol": "0.1"},
            {"max_time": -1},
            {"n_jobs": 0},
            {"n_threads": 1.5},
            {"random_state": -1},
            {"rank": True},
            {"overcomplete": None},
        ],
    )
    def test_parameters_that_make_no_sense_are_named(self, wrong):
        choices = {"rank": 2, "loss": "poisson"} | wrong
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            fit(TINY, **choices)


def test_an_interrupt_that_numba_swallows_still_ends_the_fit():
    """It comes out of a compiled call as a TypeError about an argument that is missing."""

    def lost(report):
        raise TypeError("_get_jit_address() missing 1 required positional argument: 'sig'")

    assert fit(TINY, 2, "poisson", **QUICK, callback=lost).status.interrupted
    with pytest.raises(TypeError, match="another"):
        fit(TINY, 2, "poisson", **QUICK, callback=lambda report: int(another="mistake"))
