"""The factor of one mode for new slices."""

import numpy as np
import pytest
from pieces import LOSSES, simulated
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smartcpd import CPModel, LabelledTensor, Mode, SmartCPD, SparseTensor, losses
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

SHAPE, RANK = (15, 12, 10), 2


def data_of(name, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.uniform(0.2, 1.5, (n, RANK)) for n in SHAPE]
    loss = losses.get(name)
    if loss.domain is losses.Domain.REAL:
        factors[0] -= 0.8
    return simulated(loss, np.einsum("ir,jr,kr->ijk", *factors), rng)


def fitted(X, name, **parameters):
    return SmartCPD(
        RANK, name, solver="lbfgs", tol=0, max_epochs=1000, random_state=0, **parameters
    ).fit(X)


def distance(A, B):
    """Relative to the size of the columns."""
    return float(np.max(np.abs(A - B) / np.abs(B).max(axis=0)))


# Of so few cells, a yes or no is fitted perfectly somewhere, by entries that are infinite.
@pytest.mark.parametrize("name", [n for n in LOSSES if n != "bernoulli-logit"])
def test_slices_of_the_fit_get_their_own_rows(name):
    X = data_of(name)
    est = fitted(X, name)
    for mode in range(3):
        assert distance(est.transform(X, mode), est.factors_[mode]) < 1e-4
    some = est.transform(X[:, [3, 8]], mode=1)
    assert distance(some, est.factors_[1][[3, 8]]) < 2e-4


@pytest.mark.parametrize("name", ["poisson", "bernoulli-odds", "gaussian", "beta(1.5)"])
def test_sparse_slices_as_dense_ones(name):
    X = data_of(name)
    model = fitted(X, name).model_
    thin = SparseTensor(np.argwhere(X), X[X != 0], X.shape)
    np.testing.assert_allclose(model.transform(thin, 2), model.transform(X, 2), atol=1e-8)


def test_missing_cells_have_no_influence():
    X = data_of("poisson")
    mask = np.random.default_rng(1).random(SHAPE) > 0.3
    est = fitted(np.where(mask, X, np.nan), "poisson")
    hidden = est.transform(np.where(mask, X, -99.0), mask=mask)
    assert distance(hidden, est.factors_[0]) < 1e-4
    np.testing.assert_array_equal(hidden, est.transform(np.where(mask, X, np.nan)))
    missing = SparseTensor(
        np.argwhere(mask & (X > 0)), X[mask & (X > 0)], SHAPE, missing=np.argwhere(~mask)
    )
    np.testing.assert_allclose(est.transform(missing), hidden, atol=1e-8)
    seen = SparseTensor(np.argwhere(mask), X[mask], SHAPE, "unobserved")
    np.testing.assert_allclose(est.transform(seen), hidden, atol=1e-8)


def test_a_weight_counts_as_that_many_cells():
    X = data_of("gamma")
    model = fitted(X, "gamma").model_
    twice = np.concatenate([X, X[:, :3]], axis=1)
    longer = CPModel(
        [model.factors[0], model.factors[1][[*range(12), 0, 1, 2]], model.factors[2]],
        loss_function="gamma",
    )
    weights = np.ones(SHAPE)
    weights[:, :3] = 2
    np.testing.assert_allclose(
        model.transform(X, weights=weights), longer.transform(twice), rtol=1e-6
    )


def test_slices_of_which_nothing_is_known_are_zero():
    X = data_of("poisson")
    est = fitted(X, "poisson")
    X[4] = np.nan
    with pytest.warns(UserWarning, match="No cell was observed in row 4 of mode 0"):
        A = est.transform(X)
    assert (A[4] == 0).all()
    assert distance(np.delete(A, 4, 0), np.delete(est.factors_[0], 4, 0)) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["box(20, 90)", "sparsity(1e-4)", "simplex"])
def test_the_constraint_of_the_mode_holds(name):
    X = data_of("poisson")
    constraint = {0: name, 1: "simplex", 2: "simplex"}  # a price needs a scale
    if name == "simplex":
        del constraint[2]
    est = SmartCPD(
        RANK, "poisson", constraint=constraint, solver="md", tol=0, max_epochs=2000, random_state=0
    ).fit(X)
    A = est.transform(X)
    assert distance(A, est.factors_[0]) < 1e-3
    assert (A >= 0).all()
    if name == "simplex":
        np.testing.assert_allclose(A.sum(axis=0), 1)
    if name.startswith("box"):
        assert A.min() >= 20
        assert A.max() <= 90


def test_weights_of_the_model_are_part_of_it():
    X = data_of("poisson")
    est = fitted(X, "poisson")
    unit = est.model_.normalize()
    assert distance(unit.transform(X, 1), unit.factors[1]) < 1e-4
    dead = CPModel(
        [np.c_[A, A[:, 0]] for A in unit.factors], [*unit.weights, 0], loss_function="poisson"
    )
    assert (dead.transform(X)[:, 2] == 0).all()


def test_its_own_loss():
    loss = losses.custom(lambda x, m: (x - m) ** 2, lambda x, m: 2.0 * (m - x), name="squares")
    X = data_of("gaussian")
    model = fitted(X, "gaussian").model_
    own = CPModel(model.factors, loss_function=loss)
    np.testing.assert_allclose(own.transform(X), model.transform(X), rtol=1e-6)


def test_modes_have_names():
    X = data_of("poisson")
    modes = tuple(
        Mode(n, [f"{n}{i}" for i in range(size)]) for n, size in zip("abc", SHAPE, strict=True)
    )
    est = fitted(LabelledTensor(X, modes), "poisson")
    np.testing.assert_array_equal(est.transform(X, "b"), est.transform(X, 1))
    other = (modes[0], modes[1], Mode("c", [f"c{9 - i}" for i in range(10)]))
    with pytest.raises(InvalidDataError, match="Row 0 of mode 'c' is 'c9' in X and 'c0'"):
        est.transform(LabelledTensor(X, other))
    with pytest.raises(InvalidDataError, match="Mode 1 of X is 'c'"):
        est.transform(
            LabelledTensor(
                np.ones((15, 12, 10)), (modes[0], Mode("c", range(12)), Mode("b", range(10)))
            )
        )


@pytest.mark.parametrize(
    ("X", "mode", "error", "words"),
    [
        (np.ones((3, 12)), 0, InvalidDataError, "X has 2 modes, the model 3"),
        (np.ones((3, 10, 10)), 0, InvalidDataError, "Mode 1 of X has length 10, that of the model"),
        (np.ones((3, 12, 10)), 3, InvalidParameterError, "mode must be one of 0 to 2"),
        (np.ones((3, 12, 10)), "day", InvalidParameterError, "got 'day'"),
        (-np.ones((3, 12, 10)), 0, InvalidDataError, "not negative"),
    ],
)
def test_what_does_not_fit_is_refused(X, mode, error, words):
    model = CPModel([np.ones((n, 2)) for n in SHAPE], loss_function="poisson")
    with pytest.raises(error, match=words):
        model.transform(X, mode)


def test_what_does_not_go_together_is_refused():
    factors = [np.ones((n, 2)) for n in SHAPE]
    with pytest.raises(InvalidParameterError, match="no loss"):
        CPModel(factors).transform(np.ones(SHAPE))
    with pytest.raises(IncompatibleError, match="lets entries be negative"):
        CPModel(factors, loss_function="poisson").transform(np.ones(SHAPE), constraint="free")
    with pytest.raises(NotFittedError):
        SmartCPD().transform(np.ones(SHAPE))


def test_as_a_step_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8)) + 0.1 * rng.random((30, 8))
    pipeline = make_pipeline(StandardScaler(), SmartCPD(2, random_state=0))
    A = pipeline.fit_transform(X)
    assert A.shape == (30, 2)
    np.testing.assert_allclose(pipeline.transform(X[:4]), A[:4], rtol=1e-6, atol=1e-8)
    frame = SmartCPD(2, random_state=0).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["component 1", "component 2"]


def test_the_data_stays_as_it_is():
    X = data_of("poisson")
    model = fitted(X, "poisson").model_
    before, factors = X.copy(), [A.copy() for A in model.factors]
    X.flags.writeable = False
    model.transform(X, 1)
    np.testing.assert_array_equal(X, before)
    for A, B in zip(model.factors, factors, strict=True):
        np.testing.assert_array_equal(A, B)
