"""Dense arrays on a cluster: descents on tiles, wherever they are made, are the same."""

from __future__ import annotations

import dask.array as da
import h5py
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

from smartcpd import SmartCPD, datasets, metrics
from smartcpd.errors import ClusterError, IncompatibleError

SHAPE, CHUNKS, RANK = (60, 40, 30), (30, 20, 15), 3
MEMORY = 500_000


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    X, truth = datasets.count(SHAPE, RANK, random_state=4)
    path = tmp_path_factory.mktemp("data") / "x.zarr"
    array = zarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype="float64")
    array[...] = X
    return array, truth, path


def fitted(data, client, **more):
    return SmartCPD(RANK, "poisson", random_state=0, max_memory=MEMORY, client=client, **more).fit(
        data
    )


def test_a_fit_on_workers_finds_the_factors_and_repeats(planted, client):
    array, truth, path = planted
    first = fitted(array, client)
    assert first.solver_ == "tiled"
    assert "On 2 workers" in first.status_.reason
    assert first.traffic_.rounds > 0
    assert first.traffic_.sent > 0
    assert metrics.factor_mse(first.model_, truth) < 0.05
    again = fitted(da.from_zarr(path), client)
    for A, B in zip(first.factors_, again.factors_, strict=True):
        np.testing.assert_array_equal(A, B)


def test_missing_cells_stay_unseen_on_workers(planted, client):
    _, truth, path = planted
    mask = np.random.default_rng(0).random(SHAPE) > 0.3
    holes = da.where(da.from_array(mask, chunks=CHUNKS), da.from_zarr(path), np.nan)
    masked = fitted(holes, client)
    rubbish = da.where(da.from_array(mask, chunks=CHUNKS), da.from_zarr(path), 1e6)
    same = SmartCPD(RANK, "poisson", random_state=0, max_memory=MEMORY, client=client)
    same.fit(rubbish, mask=da.from_array(mask, chunks=CHUNKS))
    for A, B in zip(masked.factors_, same.factors_, strict=True):
        np.testing.assert_array_equal(A, B)
    assert metrics.factor_mse(masked.model_, truth) < 0.1


def test_a_file_that_workers_cannot_share_is_refused(planted, client, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        data = file.create_dataset("x", data=planted[0][...], chunks=CHUNKS)
        with pytest.raises(IncompatibleError, match="Workers cannot share an HDF5 data set"):
            fitted(data, client)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["lbfgs", "mm"])
def test_full_passes_are_sums_over_what_workers_have(planted, client, solver):
    array, _, path = planted
    start = [np.random.default_rng(0).random((size, RANK)) for size in SHAPE]
    how = {"solver": solver, "init": start, "max_epochs": 4}
    here = SmartCPD(RANK, "poisson", **how).fit(array[...])
    for data in (array, da.from_zarr(path)):
        there = fitted(data, client, **how)
        assert there.loss_ == pytest.approx(here.loss_, rel=1e-9)
        assert there.traffic_.received > 0


def _without_memory(*arguments):
    raise MemoryError


def test_a_worker_without_memory_names_the_cells_and_their_size(planted, client, monkeypatch):
    monkeypatch.setattr("smartcpd.distributed.arrays._tile_answer", _without_memory)
    with pytest.raises(ClusterError, match=r"no memory left for the cells \d+ to \d+ x .* kB\)"):
        fitted(planted[0], client)
