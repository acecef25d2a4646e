"""Fits that find the parameter of their loss."""

import numpy as np
import pytest
from scipy import stats

import smartcpd
from smartcpd import CPModel, SmartCPD, SparseTensor, losses
from smartcpd._common.stacked import stack
from smartcpd._data.opening import as_storage
from smartcpd._fitting.fit import fit
from smartcpd._objectives import objective_of
from smartcpd._objectives.parameter import unlikelihood
from smartcpd.errors import IncompatibleError, InvalidParameterError

R = 1.5
OPEN = "negative-binomial(auto)"


def counts(seed=0, shape=(30, 25, 20), rank=2, r=R):
    rng = np.random.default_rng(seed)
    means = np.einsum("ir,jr,kr->ijk", *(rng.gamma(1.0, 1.0, (n, rank)) for n in shape))
    return rng.negative_binomial(r, r / (r + means))


X = counts()


@pytest.fixture(scope="module")
def dense():
    return SmartCPD(2, OPEN, random_state=0, n_threads=1).fit(X)


def test_the_parameter_of_simulated_data_is_found(dense):
    assert dense.model_.loss_function.r == pytest.approx(R, rel=0.1)
    assert dense.status_.converged
    assert str(dense.model_.loss_function) in dense.status_.reason


def test_sparse_data_has_the_same_parameter(dense):
    sparse = SparseTensor(np.argwhere(X), X[X > 0], X.shape)
    again = SmartCPD(2, OPEN, random_state=0, n_threads=1).fit(sparse)
    assert again.model_.loss_function.r == pytest.approx(dense.model_.loss_function.r, rel=0.02)


def test_other_parameters_are_less_likely(dense):
    def log_likelihood(r):
        model = SmartCPD(2, f"negative-binomial({r})", init=start(r), n_threads=1).fit(X).model_
        return model.loss_function.log_likelihood(X, model.full() / r).sum()

    def start(r):
        scale = (dense.model_.loss_function.r / r) ** (1 / 3)
        return [scale * A for A in dense.model_.distribute().factors]

    r = dense.model_.loss_function.r
    assert log_likelihood(r) > max(log_likelihood(0.8 * r), log_likelihood(1.25 * r))


def test_the_loss_and_the_last_row_are_those_of_the_model(dense):
    assert dense.loss_ == pytest.approx(dense.model_.loss(X))
    assert dense.history_[-1].loss == pytest.approx(dense.loss_)
    assert (np.diff(dense.history_["time"]) >= 0).all()


def test_the_parameter_is_saved(dense, tmp_path):
    dense.model_.save(tmp_path / "model")
    assert CPModel.load(tmp_path / "model").loss_function == dense.model_.loss_function


def test_poisson_counts_ask_for_poisson():
    X, _ = smartcpd.datasets.count((20, 15, 10), rank=1, random_state=0)
    assert "use that loss" in SmartCPD(1, OPEN, random_state=0, n_threads=1).fit(X).status_.reason


def test_a_callback_ends_all_rounds():
    seen = []
    fit = SmartCPD(2, OPEN, random_state=0, callback=lambda report: seen.append(report) or True)
    fit.fit(X)
    assert not fit.status_.converged
    assert len(seen) <= 2
    assert fit.model_.loss_function.r > 0


def test_explain_says_what_will_happen():
    assert OPEN in smartcpd.explain(X, 2, OPEN)


class TestOpenLosses:
    def test_spelling(self):
        assert losses.get("negative-binomial") == losses.get(OPEN)
        assert str(losses.get(OPEN)) == OPEN
        assert losses.get(OPEN).is_open
        assert not losses.get("negative-binomial(2)").is_open

    def test_formulas_need_the_parameter(self):
        with pytest.raises(InvalidParameterError, match="no r before a fit"):
            losses.get(OPEN).values_at(np.ones(2), np.ones(2))

    @pytest.mark.parametrize("r", [-1, 0, "often", None])
    def test_what_is_no_parameter(self, r):
        with pytest.raises(InvalidParameterError, match="r must be positive"):
            losses.NegativeBinomial(r)

    def test_no_consensus_between_losses(self):
        with pytest.raises(IncompatibleError, match="consensus"):
            SmartCPD(2, OPEN, n_init=2, consensus=True).fit(X)

    def test_a_solver_that_does_not_serve_it_is_refused_at_once(self):
        with pytest.raises(IncompatibleError, match="few-events"):
            SmartCPD(2, OPEN, solver="few-events").fit(X)


def test_what_the_user_stops_in_the_first_round_goes_no_further():
    """No other round begins, so that a fit that is resumed goes on where this one was left."""
    seen = []

    def stop(report):
        seen.append(report.record.epoch)
        return len(seen) == 2

    found = SmartCPD(2, OPEN, callback=stop, random_state=0).fit(X)
    assert not found.status_.converged
    assert len(seen) == 2
    assert found.model_.loss_function.name == "negative-binomial"


def test_what_is_interrupted_before_anything_was_recorded(monkeypatch, tmp_path):
    few = counts(shape=(8, 7, 6))
    whole = fit(few, 2, OPEN, random_state=0)

    def interrupt(self, *given):
        raise KeyboardInterrupt

    where = {"random_state": 0, "checkpoint": tmp_path}
    with monkeypatch.context() as patched:
        patched.setattr("smartcpd._methods.tracker.Tracker._remember", interrupt)
        found = fit(few, 2, OPEN, **where)
    assert found.status.interrupted
    assert np.isfinite(found.loss)
    assert found.history[-1].loss == found.loss
    again = fit(few, 2, OPEN, **where, resume=True)
    assert all(map(np.array_equal, whole.model.factors, again.model.factors))


@pytest.mark.parametrize("r", [0.7, 3.0])
def test_losses_of_different_parameters_compare_by_likelihood(r):
    rng = np.random.default_rng(0)
    factors = [rng.uniform(0.5, 1.5, (n, 2)) for n in (5, 4, 3)]
    loss = losses.get(f"negative-binomial({r})")
    mean = r * np.einsum("ir,jr,kr->ijk", *factors)
    X = rng.poisson(mean).astype(float)
    storage = as_storage(X, "zero", None, None)
    value = objective_of(storage, loss).estimate(stack(factors)).loss
    likely = stats.nbinom.logpmf(X, r, r / (r + mean)).mean()
    assert unlikelihood(storage, loss, value) == pytest.approx(-likely)
