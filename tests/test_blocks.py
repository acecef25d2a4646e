"""Arrays that are larger than memory: what is read of them, and that fits are as good."""

from __future__ import annotations

import itertools

import dask.array as da
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import smartcpd
from smartcpd import SmartCPD, datasets, losses, metrics
from smartcpd import _objectives as objectives
from smartcpd._common.stacked import stack
from smartcpd._data.tiled import TiledArray, opened
from smartcpd._data.tiled.source import joined, slabs, source_of
from smartcpd._data.tiled.tiles import Tiling
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

SHAPE, CHUNKS, RANK = (60, 50, 40), (20, 20, 20), 3
SMALL = 800_000
"""A limit that is less than the array, and enough for tiles of several chunks."""


@pytest.fixture(scope="module")
def planted():
    X, truth = datasets.count(SHAPE, RANK, random_state=4)
    return datasets.Planted(X.astype(np.float64), truth)


def in_zarr(X, path, chunks=CHUNKS):
    array = zarr.create_array(path, shape=X.shape, chunks=chunks, dtype=X.dtype)
    array[...] = X
    return array


def as_kind(kind, X, tmp_path):
    """The array as something that is not in memory."""
    if kind == "zarr":
        return in_zarr(X, tmp_path / "x.zarr")
    if kind == "hdf5":
        return h5py.File(tmp_path / "x.h5", "w").create_dataset("x", data=X, chunks=CHUNKS)
    if kind == "hdf5 without chunks":
        return h5py.File(tmp_path / "x.h5", "w").create_dataset("x", data=X)
    if kind == "dask":
        return da.from_array(X, chunks=CHUNKS)
    if kind == "memory map":
        np.save(tmp_path / "x.npy", X)
        return np.load(tmp_path / "x.npy", mmap_mode="r")
    cube = xr.DataArray(X, dims=("a", "b", "c"), name="x")
    if kind == "xarray over dask":
        return cube.chunk({"a": 20, "b": 20, "c": 20})
    cube.to_netcdf(tmp_path / "x.nc", engine="h5netcdf", encoding={"x": {"chunksizes": CHUNKS}})
    return xr.open_dataset(tmp_path / "x.nc", engine="h5netcdf")["x"]


KINDS = (
    "zarr",
    "hdf5",
    "hdf5 without chunks",
    "dask",
    "memory map",
    "xarray over dask",
    "xarray on disk",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array_is_read_in_blocks(kind, planted, tmp_path):
    X = as_kind(kind, planted.data, tmp_path)
    storage = smartcpd._data.opening.as_storage(X, max_memory=SMALL)
    assert isinstance(storage, TiledArray)
    assert storage.shape == SHAPE
    assert len(list(itertools.product(*(range(len(e) - 1) for e in storage.edges)))) > 1
    rows = [np.array([0, 19, 20, 59]), np.array([3, 49]), np.arange(40)]
    np.testing.assert_array_equal(storage.gathered(rows).array, planted.data[np.ix_(*rows)])


@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_into_memory_is_loaded(kind, planted, tmp_path):
    storage = smartcpd._data.opening.as_storage(as_kind(kind, planted.data, tmp_path))
    assert isinstance(storage, smartcpd._data.storage.Dense)
    np.testing.assert_array_equal(storage.array, planted.data)


def test_labels_of_an_xarray_stay_with_the_model(planted, tmp_path):
    X = as_kind("xarray on disk", planted.data, tmp_path)
    model = SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL).fit(X).model_
    assert [mode.name for mode in model.modes] == ["a", "b", "c"]


@pytest.mark.parametrize("seed", [0, 1])
def test_an_epoch_of_tiles_is_the_whole_tensor(seed):
    edges = (np.array([0, 7, 14, 20]), np.array([0, 5, 9]), np.array([0, 4, 8, 12, 16]))
    tiling = Tiling.within(edges, 300)
    seen = np.zeros((20, 9, 16), int)
    for rows in tiling.epoch(np.random.default_rng(seed)):
        assert np.prod([len(r) for r in rows]) <= tiling.cells
        seen[np.ix_(*rows)] += 1
    assert (seen == 1).all()
    assert tiling.cells <= 300


def test_every_row_is_seen_early():
    edges = tuple(np.arange(0, 81, 10) for _ in range(3))
    tiling = Tiling.within(edges, 40**3)
    assert tiling.groups == (2, 2, 2)
    first_two = list(tiling.epoch(np.random.default_rng(0)))[:2]
    for mode in range(3):
        assert np.unique(np.concatenate([rows[mode] for rows in first_two])).size == 80


def test_small_chunks_are_joined_and_files_cut_in_stretches():
    edges = tuple(np.append(np.arange(0, 100, 10), 100) for _ in range(2))
    assert all(len(e) < 11 for e in joined(edges, 500))
    cut = slabs((100, 30, 20), 600 * 8)
    assert [len(e) - 1 for e in cut] == [13, 1, 1]
    assert [len(e) - 1 for e in slabs((3, 100, 50), 500)] == [3, 10, 1]


@pytest.mark.parametrize("loss", ["poisson", "gaussian", "bernoulli-logit"])
def test_sums_over_blocks_are_those_over_the_array(loss, planted, tmp_path):
    X = np.minimum(planted.data, 1) if loss.startswith("bernoulli") else planted.data
    storage = opened(in_zarr(X, tmp_path / "x.zarr"), max_memory=SMALL)
    rng = np.random.default_rng(0)
    A = stack([rng.random((size, RANK)) for size in SHAPE])
    blocks, dense = (
        objectives.objective_of(s, losses.get(loss))
        for s in (storage, smartcpd._data.storage.Dense(X))
    )
    value, gradient = blocks.gradient(A)
    expected, slope = dense.gradient(A)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-15)
    assert blocks.estimate(A).loss == pytest.approx(expected, rel=1e-12)


def test_a_fit_in_tiles_is_nearly_as_good_as_one_in_memory(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    here = SmartCPD(RANK, "poisson", random_state=0).fit(planted.data)
    there = SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL).fit(X)
    assert there.solver_ == "tiled"
    assert there.status_.converged
    assert metrics.factor_mse(there.model_, planted.factors) < 2.5 * metrics.factor_mse(
        here.model_, planted.factors
    )
    exact = there.model_.loss(planted.data)
    assert exact < here.loss_ + 3e-3
    assert there.loss_ == pytest.approx(exact, rel=0.1)


def test_the_number_of_threads_changes_nothing(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    one, two = (
        SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL, n_threads=n).fit(X)
        for n in (1, 2)
    )
    for A, B in zip(one.factors_, two.factors_, strict=True):
        np.testing.assert_array_equal(A, B)


def test_what_lies_in_missing_cells_changes_nothing(planted, tmp_path):
    mask = np.random.default_rng(0).random(SHAPE) > 0.3
    X = planted.data.copy()
    rubbish = np.where(mask, X, 1e6)
    holes = np.where(mask, X, np.nan)
    fits = [
        SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL)
        .fit(in_zarr(data, tmp_path / name), mask=given)
        .factors_
        for name, data, given in (
            ("a.zarr", rubbish, in_zarr(mask, tmp_path / "m.zarr")),
            ("b.zarr", holes, None),
            ("c.zarr", holes, mask),
        )
    ]
    for others in fits[1:]:
        for A, B in zip(fits[0], others, strict=True):
            np.testing.assert_array_equal(A, B)
    assert metrics.factor_mse(fits[0], planted.factors) < 0.05


def test_weights_are_read_with_the_blocks(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    weights = np.where(np.arange(SHAPE[0])[:, None, None] % 2, 3.0, 1.0) * np.ones(SHAPE)
    stored = opened(X, None, weights, SMALL)
    assert isinstance(stored, TiledArray)
    rows = [np.array([1, 2]), np.array([0]), np.array([0, 39])]
    np.testing.assert_array_equal(stored.gathered(rows).weights[:, 0, 0], [3.0, 1.0])


def test_rows_that_nothing_is_known_of_are_zero(planted, tmp_path):
    X = planted.data.copy()
    X[7] = np.nan
    fit = SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL, tol=1e-6)
    fit.fit(in_zarr(X, tmp_path / "x.zarr"))
    assert fit.solver_ == "tiled"
    assert (fit.factors_[0][7] == 0).all()
    assert "No cell was observed" in fit.status_.reason


def test_an_interrupted_fit_goes_on_as_if_nothing_had_happened(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    whole = SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL).fit(X)
    settings = {
        "random_state": 0,
        "max_memory": SMALL,
        "checkpoint": tmp_path / "kept",
        "checkpoint_every": 0,
    }

    def stop(report):
        if report.record.phase.startswith("tile 3"):
            raise KeyboardInterrupt

    first = SmartCPD(RANK, "poisson", callback=stop, **settings).fit(X)
    assert first.status_.interrupted
    again = SmartCPD(RANK, "poisson", resume=True, **settings).fit(X)
    for A, B in zip(whole.factors_, again.factors_, strict=True):
        np.testing.assert_array_equal(A, B)


def test_full_passes_work_on_disk(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    start = [np.random.default_rng(0).random((size, RANK)) for size in SHAPE]
    for solver in ("lbfgs", "mm"):
        here, there = (
            SmartCPD(RANK, "poisson", solver=solver, init=start, max_epochs=8, **more).fit(data)
            for data, more in ((planted.data, {}), (X, {"max_memory": SMALL}))
        )
        assert there.loss_ == pytest.approx(here.loss_, rel=1e-9)


def test_what_a_fit_will_take_is_told_before(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    told = smartcpd.explain(X, RANK, "poisson", max_memory=SMALL)
    assert "solver tiled" in told
    assert "tiles" in told
    assert "max_memory 800 kB" in told


def test_what_cannot_be_done_is_refused_before_any_work(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    with pytest.raises(IncompatibleError, match="'smd' needs X in memory"):
        SmartCPD(RANK, "poisson", solver="smd", max_memory=SMALL).fit(X)
    with pytest.raises(IncompatibleError, match="constraint 'simplex'"):
        SmartCPD(RANK, "poisson", constraint={0: "simplex"}, max_memory=SMALL).fit(X)
    with pytest.raises(InvalidParameterError, match=r"chunks of up to 72 kB.*Allow 360 kB"):
        SmartCPD(RANK, "poisson", max_memory=200_000).fit(X)
    with pytest.raises(InvalidParameterError, match=r"needs about .* of memory"):
        SmartCPD(100, "poisson", max_memory=SMALL).fit(X)
    with pytest.raises(InvalidParameterError, match="max_memory must be an amount"):
        SmartCPD(RANK, "poisson", max_memory="much").fit(X)
    with pytest.raises(InvalidParameterError, match=r"mask has shape \(2, 2\)"):
        SmartCPD(RANK, "poisson", max_memory=SMALL).fit(X, mask=np.ones((2, 2), bool))
    with pytest.raises(InvalidDataError, match="dtype complex64"):
        source_of(in_zarr(np.zeros((4, 4), "complex64"), tmp_path / "c.zarr", (2, 2)))


def test_a_value_that_the_loss_cannot_describe_is_named_where_it_lies(planted, tmp_path):
    X = planted.data.copy()
    X[33, 21, 7] = -5.0
    with pytest.raises(InvalidDataError, match=r"X\[33, 21, 7\] is -5.0"):
        SmartCPD(RANK, "poisson", max_memory=SMALL, tol=1e-9).fit(in_zarr(X, tmp_path / "x.zarr"))


def test_the_loss_is_chosen_by_a_glimpse(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    fit = SmartCPD(RANK, "auto", random_state=0, max_memory=SMALL).fit(X)
    assert fit.model_.loss_function.name == "poisson"


def test_a_limit_of_time_ends_a_fit_in_the_middle(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    fit = SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL, max_time=1e-3).fit(X)
    assert not fit.status_.converged
    assert "max_time" in fit.status_.reason


def test_crumbs_are_read_a_few_at_a_time_and_the_clock_is_looked_at_between(tmp_path):
    array = zarr.create_array(tmp_path / "x.zarr", shape=(14,) * 3, chunks=(1,) * 3, dtype="f8")
    stored = TiledArray(source_of(array), 10_000_000)
    assert all(np.prod([s.stop - s.start for s in w]) <= 1024 for w in stored.places())
    seen = []

    def watch():
        seen.append(1)
        if len(seen) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        stored.gathered([np.arange(14)] * 3, None, watch)
    assert len(seen) == 3


def test_a_part_of_a_fit_has_what_is_left_of_its_time(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    fit = SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL).fit(X)
    times = [row.time for row in fit.history_]
    assert times == sorted(times)


def test_a_start_of_the_users_is_improved(planted, tmp_path):
    X = in_zarr(planted.data, tmp_path / "x.zarr")
    wide = [np.random.default_rng(0).random((size, RANK + 2)) for size in SHAPE]
    for start in (planted.factors, wide):
        fit = SmartCPD(RANK, "poisson", init=start, max_memory=SMALL, random_state=0).fit(X)
        assert fit.model_.rank == RANK
        assert fit.model_.loss(planted.data) < 0.5 * SmartCPD(1, "poisson").fit(X).loss_ + 1.0


def test_weights_that_are_even_within_blocks_still_count(planted, tmp_path):
    """Slabs of the length of a chunk weigh 1, 3 and nothing."""
    weights = np.repeat([1.0, 3.0, 0.0], 20)[:, None, None] * np.ones(SHAPE)
    stored = opened(in_zarr(planted.data, tmp_path / "x.zarr"), None, weights, SMALL)
    here = smartcpd._data.storage.Dense.of(planted.data, None, weights)
    rows = [np.array([5, 25, 45]), np.arange(50), np.arange(40)]
    np.testing.assert_array_equal(stored.gathered(rows).weights[:, 0, 0], [1.0, 3.0, 0.0])
    rng = np.random.default_rng(0)
    A = stack([rng.random((size, RANK)) for size in SHAPE])
    loss = losses.get("poisson")
    value, gradient = objectives.objective_of(stored, loss).gradient(A)
    expected, slope = objectives.objective_of(here, loss).gradient(A)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-15)
    fit = SmartCPD(RANK, "poisson", random_state=0, max_memory=SMALL, tol=1e-6)
    fit.fit(in_zarr(planted.data, tmp_path / "y.zarr"), weights=weights)
    assert fit.solver_ == "tiled"
    assert (fit.factors_[0][40:] == 0).all()
    assert (
        metrics.factor_mse(
            [A[:40] if k == 0 else A for k, A in enumerate(fit.factors_)],
            [A[:40] if k == 0 else A for k, A in enumerate(planted.factors)],
        )
        < 0.1
    )
