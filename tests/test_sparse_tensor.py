"""The sparse tensor: what goes in, how it is kept, what is refused."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import smartcpd
from smartcpd import SparseTensor
from smartcpd._data.opening import as_storage
from smartcpd._kernels.sorting import STRICT, sortedness
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError


@st.composite
def entries(draw):
    """A shape, cells in it (some of them twice) and values (some of them zero)."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=2, max_size=4)))
    count = draw(st.integers(0, 30))
    cells = [tuple(draw(st.integers(0, n - 1)) for n in shape) for _ in range(count)]
    values = draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count))
    return shape, np.array(cells, np.int64).reshape(-1, len(shape)), np.array(values, np.int64)


def dense_of(shape, cells, values):
    X = np.zeros(shape, np.int64)
    np.add.at(X, tuple(cells.T), values)
    return X


class TestStorage:
    @given(entries())
    @settings(max_examples=60, deadline=None)
    def test_any_order_duplicates_and_zeros(self, example):
        shape, cells, values = example
        X = dense_of(shape, cells, values)
        tensor = SparseTensor(cells, values, shape)
        np.testing.assert_array_equal(tensor.to_dense(), X)
        assert tensor.nnz == np.count_nonzero(X)
        ranked = sorted(range(len(shape)), key=lambda mode: -shape[mode])
        assert tensor.nnz < 2 or sortedness([tensor.indices[k] for k in ranked]) == STRICT

    @given(entries())
    @settings(max_examples=40, deadline=None)
    def test_stored_zeros_are_observations_where_absent_cells_are_not(self, example):
        shape, cells, values = example
        tensor = SparseTensor(cells, values, shape, absent="unobserved")
        assert tensor.nnz == len(np.unique(cells, axis=0)) == tensor.n_observed

    def test_the_smallest_integers_that_fit(self):
        tensor = SparseTensor([[0, 0, 0], [255, 256, 65536]], np.float32([1, 2]))
        assert [c.dtype for c in tensor.indices] == [np.uint8, np.uint16, np.uint32]
        assert tensor.values.dtype == np.float32

    def test_nothing_of_the_user_changes(self):
        cells, values = np.array([[1, 0], [0, 1]]), np.array([2.0, 3.0])
        before = cells.copy(), values.copy()
        tensor = SparseTensor(cells, values)
        np.testing.assert_array_equal(cells, before[0])
        np.testing.assert_array_equal(values, before[1])
        for array in (*tensor.indices, tensor.values):
            assert not np.shares_memory(array, cells)
            assert not np.shares_memory(array, values)

    def test_sums_that_outgrow_their_type(self):
        tensor = SparseTensor([[0, 0]] * 3, np.uint8([200, 200, 1]))
        assert tensor.values.tolist() == [401]
        assert SparseTensor([[0, 0]] * 2, np.array([True, True])).values.dtype == bool

    def test_more_cells_than_a_machine_integer_counts(self):
        shape = (2_000_000, 3_000_000, 4_000_000)
        tensor = SparseTensor([[1_999_999, 5, 3_999_999], [0, 2_999_999, 1]], [1, 2], shape)
        assert tensor.n_cells == 24 * 10**18 > 2**63
        assert tensor.mean() == pytest.approx(3 / 24e18)
        with pytest.raises(InvalidParameterError, match="192,000,000,000,000,000,000 bytes"):
            tensor.to_dense()

    def test_long_modes_are_sorted_too(self):
        # More keys than counting would be worth.
        rng = np.random.default_rng(0)
        cells = rng.integers([500_000, 3], size=(200, 2))
        tensor = SparseTensor(cells, np.ones(200), (500_000, 3))
        assert sortedness(tensor.indices) == STRICT

    def test_density_in_words(self):
        assert repr(SparseTensor([[0, 0]], 1, (2, 5))) == (
            "SparseTensor(2x5, 1 nonzeros, 10 %, int64)"
        )


class TestConversion:
    X = np.random.default_rng(0).poisson(0.3, (4, 5, 3))

    def test_scipy_of_any_order(self):
        tensor = as_storage(scipy.sparse.coo_array(self.X))
        assert isinstance(tensor, SparseTensor)
        np.testing.assert_array_equal(tensor.to_dense(), self.X)

    @pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "lil_matrix", "dok_array"])
    def test_scipy_tables(self, kind):
        table = self.X[:, :, 0]
        tensor = as_storage(getattr(scipy.sparse, kind)(table))
        np.testing.assert_array_equal(tensor.to_dense(), table)

    def test_pyttb(self):
        ttb = pytest.importorskip("pyttb")
        tensor = as_storage(
            ttb.sptensor.from_tensor_type(ttb.tensor(self.X.astype(float)))
            if hasattr(ttb.sptensor, "from_tensor_type")
            else ttb.tensor(self.X.astype(float)).to_sptensor()
        )
        np.testing.assert_array_equal(tensor.to_dense(), self.X)

    def test_pydata(self):
        sparse = pytest.importorskip("sparse")
        tensor = as_storage(sparse.COO.from_numpy(self.X))
        np.testing.assert_array_equal(tensor.to_dense(), self.X)

    def test_what_looks_like_pydata(self):
        class COO:
            coords = np.array(np.nonzero(self.X))
            data = self.X[self.X > 0]
            shape = self.X.shape
            fill_value = 0

        COO.__module__ = "sparse.numba_backend"
        np.testing.assert_array_equal(as_storage(COO()).to_dense(), self.X)
        COO.fill_value = 1
        with pytest.raises(InvalidDataError, match="fill_value=1"):
            as_storage(COO())


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[0, 1]], [1, 2]), "1 cells in indices but 2 values"),
            (([0, 1], [1, 2]), "one row an entry"),
            (([[0.5, 1.0]], [1]), "whole numbers; got dtype float64"),
            (([[0], [1]], [1, 1]), "at least two modes"),
            (([[0, 5]], [1], (2, 5)), "Index 5 of mode 1 is out of bounds"),
            (([[0, -1]], [1], (2, 5)), "Index -1 of mode 1"),
            (([[0, 1]], [1], (2, 5, 3)), "does not fit indices of 2 modes"),
            (([[0, 1]], ["a"]), "real numbers"),
            ((np.empty((0, 3), int), []), "pass shape"),
            (([[0, 0]], [1], (2**31, 2**31)), "rows in all"),
        ],
    )
    def test_malformed_entries(self, arguments, message):
        with pytest.raises(InvalidDataError, match=message):
            SparseTensor(*arguments)

    def test_absent(self):
        with pytest.raises(InvalidParameterError, match="'zero' or 'unobserved'"):
            SparseTensor([[0, 0]], 1, absent="missing")

    @pytest.mark.parametrize("loss", ["gamma", "rayleigh", "beta(0)", "beta(-1)"])
    def test_losses_without_zeros(self, loss):
        X = SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], (3, 3))
        with pytest.raises(IncompatibleError, match="cannot describe exact zeros"):
            smartcpd.decompose(X, 1, loss)
        smartcpd.decompose(X, 1, loss, absent="unobserved", max_epochs=2)

    def test_values_that_a_loss_cannot_describe(self):
        X = SparseTensor([[0, 0], [1, 1], [1, 1]], [1, 1, 1])
        with pytest.raises(InvalidDataError, match=r"X\[1, 1\] is 2: .*added up"):
            smartcpd.decompose(X, 1, "bernoulli-odds")
        X = SparseTensor([[0, 0], [1, 2]], [1.0, np.nan])
        with pytest.raises(InvalidDataError, match=r"X\[1, 2\] is NaN"):
            smartcpd.decompose(X, 1, "gaussian")

    def test_dense_data_has_no_absent_cells(self):
        with pytest.raises(IncompatibleError, match="X is dense"):
            smartcpd.decompose(np.ones((3, 3)), 1, absent="unobserved")

    def test_samplers(self):
        with pytest.raises(IncompatibleError, match="X is dense"):
            smartcpd.decompose(np.ones((3, 3)), 1, sampler="nonzeros")
        X = SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], absent="unobserved")
        with pytest.raises(IncompatibleError, match="unobserved cells"):
            smartcpd.decompose(X, 1, sampler="uniform")

    def test_counts_too_thinly_spread(self):
        rng = np.random.default_rng(0)
        cells = np.stack([rng.permutation(4_000_000)[:200_000] for _ in range(3)], axis=1)
        X = SparseTensor(cells, 1, (4_000_000,) * 3)
        with pytest.raises(InvalidDataError, match="too close to the eps"):
            smartcpd.decompose(X, 1, "poisson")
