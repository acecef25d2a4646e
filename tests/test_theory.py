"""The convergence theorem, and the two measures of distance from a solution."""

import numpy as np
import pytest
from full_batch import settings
from scipy.optimize import minimize

from smartcpd import constraints, losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack, unstack
from smartcpd._data.opening import as_storage
from smartcpd._fitting.model import CPModel
from smartcpd._methods.smd_phase import Sweeper
from smartcpd._objectives import objective_of
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.metrics import kkt_residual, stationarity
from smartcpd.sampling.uniform import Uniform
from smartcpd.steps import Constant

SHAPE, RANK, N_FIBERS = (8, 7, 6), 2, 4
BOX = "box(0.01, 3)"


def example(loss, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.uniform(0.2, 1.2, (n, RANK)) for n in SHAPE]
    M = 3 * CPModel(factors).full()
    return rng.poisson(M) if loss == "poisson" else M + rng.standard_normal(SHAPE)


def random_model(loss, seed=1):
    rng = np.random.default_rng(seed)
    return CPModel([rng.uniform(0.5, 1.5, (n, RANK)) for n in SHAPE], loss_function=loss)


def iterates(X, loss, mirror, eta, n_iterations, seed, n_points=6):
    """Models along a run with constant steps."""
    rng = np.random.default_rng(seed)
    step = Constant(eta)
    problem = Problem.build(X, RANK, loss, mirror=mirror, constraint=BOX, step=step)
    A = stack([rng.uniform(0.2, 1.0, (n, RANK)) for n in SHAPE])
    sweeper = Sweeper(problem, problem.phases[0], settings(N_FIBERS))
    sweeper.start(A, rng)
    for _ in range(n_points):
        modes = rng.integers(len(SHAPE), size=n_iterations // n_points)
        sweeper.run(Uniform().draw(problem.storage, modes, N_FIBERS, rng), A)
        yield CPModel(unstack(A, SHAPE), loss_function=loss)


def least_distance(X, loss, mirror, eta, n_iterations):
    """The least expected stationarity measure along a run."""
    with threads.limited_to(1):
        table = [
            [
                stationarity(model, X, mirror=mirror, constraint=BOX, lam=0.1)
                for model in iterates(X, loss, mirror, eta, n_iterations, seed)
            ]
            for seed in range(4)
        ]
    return np.mean(table, axis=0).min()


class TestTheorem:
    LENGTHS = np.array([240, 960, 3840])

    def exponent(self, loss, mirror, eta_of):
        """The power of T by which the measure falls."""
        X = example(loss)
        found = [least_distance(X, loss, mirror, eta_of(T), T) for T in self.LENGTHS]
        return np.polyfit(np.log(self.LENGTHS), np.log(found), 1)[0]

    @pytest.mark.parametrize(
        ("loss", "mirror"),
        [("poisson", "entropy"), ("poisson", "quadratic"), ("gaussian", "quadratic")],
    )
    def test_steps_of_one_over_root_t_reach_one_over_root_t(self, loss, mirror):
        assert self.exponent(loss, mirror, lambda T: 10 / np.sqrt(T)) < -0.35

    def test_steps_that_do_not_shrink_level_off(self):
        # The contrast without which the first test could pass for the wrong reason.
        assert self.exponent("gaussian", "quadratic", lambda T: 1.0) > -0.2


def solution(X, loss, low, high=np.inf, seed=0):
    """A constrained minimiser, by SciPy."""
    objective = objective_of(as_storage(X), losses.get(loss))
    start = stack(random_model(loss, seed).factors)

    def value_and_gradient(flat):
        value, gradient = objective.gradient(flat.reshape(start.shape))
        return value, gradient.ravel()

    with threads.limited_to(1):
        found = minimize(
            value_and_gradient,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[(low, high)] * start.size,
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-10},
        )
    return CPModel(unstack(found.x.reshape(start.shape), SHAPE), loss_function=loss)


CASES = [
    ("poisson", "nonnegative", 0.0, np.inf),
    ("gaussian", "free", -np.inf, np.inf),
    ("gaussian", "nonnegative", 0.0, np.inf),
    # Tight enough for bounds to be active.
    ("poisson", "box(0.5, 1.2)", 0.5, 1.2),
    ("gaussian", "box(0.5, 1.2)", 0.5, 1.2),
]


@pytest.mark.parametrize(("loss", "constraint", "low", "high"), CASES)
def test_both_measures_vanish_at_a_solution_only(loss, constraint, low, high):
    X = example(loss)
    solved, other = solution(X, loss, low, high), random_model(loss)
    measures = {
        "kkt": lambda model: kkt_residual(model, X, constraint),
        "stationarity": lambda model: stationarity(model, X, constraint=constraint),
    }
    for name, measure in measures.items():
        assert measure(solved) < 1e-4 * measure(other), name
    assert measures["kkt"](solved) < 1e-4
    assert measures["kkt"](other) > 0.02


@pytest.mark.parametrize("loss", ["gaussian", "poisson"])
def test_the_residual_falls_towards_a_perfect_fit(loss):
    truth = random_model(loss)
    rng = np.random.default_rng(0)
    residuals = []
    for size in (1e-2, 1e-4, 1e-6):
        near = [A * (1 + size * rng.standard_normal(A.shape)) for A in truth.factors]
        model = CPModel(near, loss_function=loss)
        residuals.append(kkt_residual(model, truth.full(), "nonnegative"))
    assert residuals[1] < 0.1 * residuals[0]
    assert residuals[2] < 0.1 * residuals[1]


def test_on_the_simplex_the_residual_is_that_of_the_directions_within():
    # The best distributions, by expectation-maximisation in plain NumPy.
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (8, RANK)) @ rng.uniform(0, 1, (RANK, 7)) + rng.uniform(0, 0.2, (8, 7))
    X *= RANK / X.sum()
    A, B = (rng.dirichlet(np.full(n, 5.0), RANK).T for n in X.shape)
    start = kkt_residual(CPModel([A, B], loss_function="poisson"), X, "simplex")
    for _ in range(5_000):
        A = A * ((X / (A @ B.T)) @ B)
        A /= A.sum(axis=0)
        B = B * ((X / (A @ B.T)).T @ A)
        B /= B.sum(axis=0)
    end = kkt_residual(CPModel([A, B], loss_function="poisson"), X, "simplex")
    assert end < 1e-3 * start


class TestUnits:
    """The residual tells how far there is to go, not in which units."""

    @pytest.mark.parametrize("scale", [1e-3, 1e3])
    @pytest.mark.parametrize("loss", ["gaussian", "poisson", "gamma"])
    def test_of_the_data(self, loss, scale):
        X = example("poisson") + 0.5
        model = random_model(loss)
        scaled = CPModel([A * scale ** (1 / 3) for A in model.factors], loss_function=loss)
        expected = kkt_residual(model, X, "nonnegative")
        assert kkt_residual(scaled, scale * X, "nonnegative") == pytest.approx(expected, rel=1e-4)

    @pytest.mark.parametrize("constraint", ["free", "nonnegative"])
    def test_of_the_modes(self, constraint):
        X, model = example("gaussian"), random_model("gaussian")
        A, B, C = model.factors
        moved = CPModel([100 * A, B / 20, C / 5], loss_function="gaussian")
        expected = kkt_residual(model, X, constraint)
        assert kkt_residual(moved, X, constraint) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("constraint", ["free", "nonnegative"])
    def test_of_each_component(self, constraint):
        X, model = example("gaussian"), random_model("gaussian")
        A, B, C = model.factors
        moved = CPModel([A * [10, 0.1], B / [10, 0.1], C], loss_function="gaussian")
        expected = kkt_residual(model, X, constraint)
        assert kkt_residual(moved, X, constraint) == pytest.approx(expected, rel=1e-9)

    def test_of_the_weights(self):
        X, model = example("poisson"), random_model("poisson")
        normalised = model.normalize()
        assert not np.allclose(normalised.weights, 1)
        residuals = [kkt_residual(m, X) for m in (normalised, normalised.distribute())]
        assert residuals[0] == pytest.approx(residuals[1], rel=1e-9)


class TestRefusals:
    def test_a_model_without_a_loss(self):
        model = CPModel(random_model("poisson").factors)
        for measure in (kkt_residual, stationarity):
            with pytest.raises(InvalidParameterError, match="no loss"):
                measure(model, example("poisson"))

    def test_data_of_another_shape(self):
        for measure in (kkt_residual, stationarity):
            with pytest.raises(InvalidParameterError, match=r"shape \(2, 2, 2\)"):
                measure(random_model("poisson"), np.ones((2, 2, 2)))

    def test_sets_that_couple_entries(self):
        with pytest.raises(IncompatibleError, match=r"'simplex'.*Use kkt_residual"):
            stationarity(
                random_model("poisson"), example("poisson"), constraint=constraints.get("simplex")
            )

    @pytest.mark.parametrize("lam", [0, -1.0])
    def test_a_proximal_weight_that_is_not_positive(self, lam):
        with pytest.raises(InvalidParameterError, match="lam must be positive"):
            stationarity(random_model("poisson"), example("poisson"), lam=lam)
