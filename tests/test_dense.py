"""Dense data: any dtype, any memory layout, never copied, never changed."""

import numpy as np
import pytest

from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel

SHAPE = (20, 17, 5)


def strided(X):
    wide = np.zeros([2 * n for n in X.shape], X.dtype)
    wide[::2, ::2, ::2] = X
    return wide[::2, ::2, ::2]


def unaligned(X):
    raw = np.empty(X.nbytes + 1, np.uint8)
    view = raw[1:].view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "transposed": lambda X: np.ascontiguousarray(X.transpose(1, 2, 0)).transpose(2, 0, 1),
    "negative strides": lambda X: np.ascontiguousarray(X[::-1, :, ::-1])[::-1, :, ::-1],
    "read-only": read_only,
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "unaligned": unaligned,
    "list": lambda X: X.tolist(),
    "broadcast": lambda X: np.broadcast_to(X[:, :, :1], X.shape),
}
DTYPES = ["bool", "uint8", "int8", "int16", "int64", "float16", "float32", "float64", "longdouble"]


@pytest.fixture(scope="module")
def cells():
    return np.random.default_rng(0).integers(2, size=SHAPE)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(1)
    return CPModel([rng.random((n, 3)) for n in SHAPE], loss_function="bernoulli-odds")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(layout, cells, model):
    X = LAYOUTS[layout](cells.astype("float64"))
    expected = model.loss(np.array(X, order="C", dtype=float))
    assert model.loss(X) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype(dtype, cells, model):
    assert model.loss(cells.astype(dtype)) == pytest.approx(model.loss(cells), rel=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "uint32"])
def test_numbers_are_read_exactly(dtype):
    info = np.finfo if dtype.startswith("f") else np.iinfo
    rng = np.random.default_rng(0)
    bits = rng.integers(2**16, size=(40, 30)).astype("uint16")
    X = bits.view("float16") if dtype == "float16" else bits.astype(dtype)
    X = np.where(np.isfinite(X), X, 0)
    X[0, 0] = info(dtype).max
    model = CPModel([np.full((40, 1), 1.5), np.ones((30, 1))], loss_function="gaussian")
    expected = 0.5 * np.mean((X.astype(float) - 1.5) ** 2)
    assert model.loss(X) == pytest.approx(expected, rel=1e-12)


def test_memory_mapped(cells, model, tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, cells.astype("float32"))
    before = path.read_bytes()
    X = np.load(path, mmap_mode="r")
    assert model.loss(X) == pytest.approx(model.loss(cells), rel=1e-13)
    fit(X, 2, "bernoulli-odds", max_epochs=2, random_state=0)
    assert path.read_bytes() == before


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "list"])
def test_a_fit_changes_nothing(layout, cells):
    X = LAYOUTS[layout](cells.astype("float64"))
    before = X.tobytes()
    fit(X, 2, "bernoulli-odds", max_epochs=3, random_state=0)
    assert X.tobytes() == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fit_does_not_depend_on_the_layout(layout, cells):
    X = LAYOUTS[layout](cells.astype("float64"))
    contiguous = np.array(X, order="C", dtype=float)
    results = [
        fit(data, 2, "bernoulli-odds", solver="smd", max_epochs=3, random_state=0)
        for data in (X, contiguous)
    ]
    for A, B in zip(*(r.model.factors for r in results), strict=True):
        np.testing.assert_allclose(A, B, rtol=1e-9)


def test_a_fit_of_high_order_is_quick_and_ends_in_time():
    """A tensor of many short modes is compressed as one of few long ones."""
    rng = np.random.default_rng(0)
    factors = [rng.uniform(0.2, 1.2, (2, 3)) for _ in range(10)]
    X = rng.poisson(20 * _product(factors)).reshape((2,) * 10)
    found = fit(X, 3, "poisson", random_state=0)
    assert found.status.converged
    assert found.loss <= fit(X, 3, "poisson", init=factors).loss + 1e-6
    stopped = fit(X, 3, "poisson", random_state=0, max_time=1e-3)
    assert "max_time" in stopped.status.reason
    assert np.isfinite(stopped.loss)


@pytest.mark.parametrize("loss", ["poisson", "gaussian", "gamma"])
def test_time_is_looked_at_before_a_second_pass_over_many_modes(loss):
    X = 1 + np.random.default_rng(0).poisson(1.0, (2,) * 16)
    stopped = fit(X, 3, loss, random_state=0, max_time=1e-3, n_threads=1)
    assert "max_time" in stopped.status.reason
    assert stopped.history[-1].epoch <= 1


def _product(factors):
    """The cells of a model, one after the other."""
    cells = np.ones((1, factors[0].shape[1]))
    for F in factors:
        cells = (cells[:, None] * F).reshape(-1, F.shape[1])
    return cells.sum(axis=1)
