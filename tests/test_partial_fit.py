"""A mode that grows, slab by slab."""

import pickle

import numpy as np
import pytest

from smartcpd import LabelledTensor, Mode, SmartCPD, SparseTensor, datasets
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

RANK = 3
X, _ = datasets.count((60, 20, 15), RANK, a_max=1.0, random_state=0)
SLABS = np.split(X, 6)


def estimator(**parameters):
    return SmartCPD(**{"rank": RANK, "loss": "poisson", "random_state": 0} | parameters)


def arrived(slabs=SLABS, est=None, **parameters):
    est = est or estimator()
    for slab in slabs:
        est.partial_fit(slab, **parameters)
    return est


@pytest.fixture(scope="module")
def batch():
    return estimator().fit(X)


@pytest.fixture(scope="module")
def online():
    return arrived()


def test_it_ends_near_the_fit_of_all_data(online, batch):
    assert [A.shape for A in online.factors_] == [(60, 3), (20, 3), (15, 3)]
    assert online.model_.loss(X) - batch.loss_ < 0.01 * abs(batch.loss_)
    assert online.loss_ == pytest.approx(online.model_.loss(X), rel=0.02)
    assert online.status_.converged
    assert online.history_[-1].phase == "partial_fit"
    assert len([r for r in online.history_ if r.phase == "partial_fit"]) == 5


def test_the_first_call_is_a_fit():
    fit, first = estimator().fit(SLABS[0]), estimator().partial_fit(SLABS[0])
    for A, B in zip(fit.factors_, first.factors_, strict=True):
        np.testing.assert_array_equal(A, B)


def test_after_a_fit_its_model_stands_for_its_data(batch):
    est = arrived(SLABS[3:], estimator().fit(X[:30]))
    assert est.model_.loss(X) - batch.loss_ < 0.01 * abs(batch.loss_)


def test_fitting_again_forgets_all(online):
    est = pickle.loads(pickle.dumps(online))
    est.fit(SLABS[0])
    assert not hasattr(est, "past_")
    assert est.factors_[0].shape == (10, 3)


def test_sparse_slabs_as_dense_ones(online):
    thin = [SparseTensor(np.argwhere(S), S[S > 0], S.shape) for S in SLABS[1:]]
    est = arrived(thin, estimator().partial_fit(SLABS[0]))
    for A, B in zip(est.factors_, online.factors_, strict=True):
        np.testing.assert_allclose(A, B, rtol=1e-6, atol=1e-8)


def test_any_mode_can_grow(online):
    turned = [np.moveaxis(slab, 0, 2) for slab in SLABS]
    est = arrived(turned, mode=2)
    assert est.model_.shape == (20, 15, 60)
    assert est.model_.loss(np.moveaxis(X, 0, 2)) == pytest.approx(online.model_.loss(X), rel=1e-2)


@pytest.mark.parametrize("loss", ["gaussian", "gamma", "bernoulli-logit"])
def test_other_losses(loss):
    rng = np.random.default_rng(1)
    factors = [rng.uniform(0.3, 1.5, (n, 2)) for n in (100, 18, 15)]
    data = np.einsum("ir,jr,kr->ijk", *factors)
    if loss == "gaussian":
        data = data + 0.3 * rng.standard_normal(data.shape)
    elif loss == "gamma":
        data = data * rng.gamma(4.0, 0.25, data.shape)
    else:
        data = rng.random(data.shape) < 1 / (1 + np.exp(2.0 - data))
    whole = estimator(rank=2, loss=loss).fit(data)
    est = arrived(np.split(data, 5), estimator(rank=2, loss=loss))
    assert est.model_.loss(data) - whole.loss_ < 0.02 * abs(whole.loss_)


def test_missing_cells_have_no_influence():
    rng = np.random.default_rng(0)
    masks = [rng.random(S.shape) > 0.2 for S in SLABS]
    one, two = estimator(), estimator()
    for slab, mask in zip(SLABS, masks, strict=True):
        one.partial_fit(np.where(mask, slab, 777), mask=mask)
        two.partial_fit(np.where(mask, slab, np.nan))
    for A, B in zip(one.factors_, two.factors_, strict=True):
        np.testing.assert_array_equal(A, B)


def test_slices_of_which_nothing_is_known_are_zero():
    est = estimator().partial_fit(SLABS[0])
    slab = SLABS[1].astype(float)
    slab[3] = np.nan
    with pytest.warns(UserWarning, match="row 3 of mode 0"):
        est.partial_fit(slab)
    assert (est.factors_[0][13] == 0).all()


def test_what_is_forgotten_no_longer_counts():
    """After a change of the other factors, a fit that forgets follows sooner."""
    after, _ = datasets.count((40, 20, 15), RANK, a_max=1.0, random_state=5)
    ends = {}
    for forgetting in (1.0, 0.3):
        est = arrived(SLABS)
        for slab in np.split(after, 4):
            est.partial_fit(slab, forgetting=forgetting)
        last = est.model_.factors[0][-10:]
        model = type(est.model_)([last, *est.factors_[1:]], loss_function="poisson")
        ends[forgetting] = model.loss(after[-10:])
    assert ends[0.3] < ends[1.0]


def test_constraints_of_the_other_modes_hold():
    est = arrived(SLABS[:3], estimator(constraint={1: "simplex", 2: "box(0, 1)"}, max_epochs=200))
    np.testing.assert_allclose(est.factors_[1].sum(axis=0), 1)
    assert est.factors_[2].max() <= 1
    assert min(A.min() for A in est.factors_) >= 0


def labelled(slab, first):
    days = np.datetime64("2026-01-01") + np.arange(first, first + len(slab))
    modes = (Mode("day", days), Mode("place", range(20)), Mode("kind", range(15)))
    return LabelledTensor(slab, modes)


def test_labels_grow():
    est = estimator().partial_fit(labelled(SLABS[0], 0), mode="day")
    est.partial_fit(labelled(SLABS[1], 10), mode="day")
    mode = est.model_.modes[0]
    assert (mode.name, len(mode)) == ("day", 20)
    assert mode.text()[-1] == "2026-01-20"
    with pytest.raises(InvalidDataError, match="Row '2026-01-20' of mode 'day' is in the model"):
        est.partial_fit(labelled(SLABS[1], 19))
    with pytest.raises(InvalidDataError, match="Pass a LabelledTensor"):
        est.partial_fit(SLABS[2])


def test_what_makes_no_sense_is_refused(online):
    for wrong in (0, 1.5, "half", True):
        with pytest.raises(InvalidParameterError, match="forgetting must be above 0"):
            estimator().partial_fit(SLABS[0], forgetting=wrong)
    with pytest.raises(IncompatibleError, match="Mode 0 has grown so far"):
        online.partial_fit(np.ones((60, 2, 15)), mode=1)
    with pytest.raises(InvalidDataError, match="only mode 0 may differ"):
        online.partial_fit(np.ones((2, 19, 15)))
    with pytest.raises(IncompatibleError, match="ties all rows of mode 0 together"):
        arrived(SLABS[:2], estimator(constraint={0: "simplex"}))
