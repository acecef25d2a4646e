"""Fits on a Dask cluster: the same results as in memory, whatever becomes of workers."""

import os
import signal

import numpy as np
import pytest

from smartcpd import SmartCPD, SparseTensor, datasets, losses
from smartcpd._objectives import objective_of
from smartcpd.distributed import Cluster, heartbeats, pool, sharing
from smartcpd.distributed.tensor import ShardedTensor
from smartcpd.distributed.worker import Shard
from smartcpd.errors import ClusterError, IncompatibleError, InvalidDataError, InvalidParameterError
from smartcpd.partitions import write_tensor
from smartcpd.partitions.held import held_parts
from smartcpd.partitions.row_range import RowRange

dask = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # those of the cluster's own threads
SHAPE, RANK = (400, 60, 50), 3


@pytest.fixture(scope="module")
def cluster():
    with dask.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as local:
        yield local


@pytest.fixture(scope="module")
def client(cluster):
    with dask.Client(cluster) as found:
        yield found


@pytest.fixture(autouse=True)
def _whole_again(request):
    """A worker that a test killed is back before the next one begins."""
    if "client" in request.fixturenames:
        request.getfixturevalue("client").wait_for_workers(2, timeout=60)


@pytest.fixture(scope="module")
def counts():
    return datasets.events(SHAPE, RANK, 60_000, random_state=1).data


@pytest.fixture(scope="module")
def folder(counts, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "counts.parts"
    return write_tensor(path, counts, part_bytes=40_000)


@pytest.fixture(scope="module")
def in_memory(counts):
    return SmartCPD(RANK, "poisson", random_state=0).fit(counts).loss_


def _fitted(client, X, **settings):
    return SmartCPD(RANK, "poisson", random_state=0, client=client, **settings).fit(X)


@pytest.mark.slow
def test_a_folder_is_fitted_as_well_as_in_memory(client, folder, in_memory):
    fits = [_fitted(Cluster(client, local_updates=n), folder) for n in (2, 2, 50)]
    for fit in fits:
        assert fit.loss_ == pytest.approx(in_memory, rel=5e-4)
    for a, b in zip(fits[0].factors_, fits[1].factors_, strict=True):
        np.testing.assert_array_equal(a, b)
    assert "2 shards, 50 local updates a round" in fits[2].status_.reason
    assert fits[0].traffic_.received > 0
    assert "2 local updates a round" in {row.phase for row in fits[0].history_}


@pytest.mark.slow
def test_the_number_of_local_updates_is_found(client, folder, in_memory):
    fit = _fitted(client, folder)
    assert fit.loss_ == pytest.approx(in_memory, rel=5e-4)
    assert "local update" in fit.status_.reason


@pytest.mark.slow
def test_the_last_mode_is_divided_as_well_as_the_first(client, counts, in_memory, tmp_path):
    turned = SparseTensor(counts.indices[::-1], counts.values, SHAPE[::-1])
    folder = write_tensor(tmp_path / "x.parts", turned, part_bytes=40_000)
    fit = _fitted(Cluster(client, local_updates=2), folder)
    assert folder.manifest.mode == 2
    assert fit.loss_ == pytest.approx(in_memory, rel=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["poisson", "gaussian", "bernoulli-odds"])
def test_sums_over_shards_are_sums_over_the_tensor(client, folder, counts, loss):
    A = np.random.default_rng(0).random((sum(SHAPE), 2)) + 0.1
    shared = ShardedTensor.on(Cluster(client, shards=3), folder)
    try:
        whole, shards = (objective_of(storage, losses.get(loss)) for storage in (counts, shared))
        (u, a), (v, b) = whole.gradient(A), shards.gradient(A)
        assert v == pytest.approx(u, rel=1e-12)
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-14)
    finally:
        shared.pool.close()


def _pieces():
    rng = np.random.default_rng(3)
    sparse = datasets.events((50, 20, 10), 2, 3000, random_state=0).data
    dense = rng.poisson(0.5, (30, 20, 10)).astype(float)
    dense[rng.random(dense.shape) < 0.1] = np.nan
    return sparse, dense


@pytest.mark.slow
def test_a_list_of_tensors_is_one_tensor(client):
    sparse, dense = _pieces()
    seen = ~np.isnan(dense)
    whole = np.concatenate([sparse.to_dense(), np.where(seen, dense, 0.0)])
    mask = np.concatenate([np.ones(sparse.shape, bool), seen])
    fit = SmartCPD(2, "poisson", random_state=0, client=client).fit([sparse, dense])
    assert fit.loss_ == pytest.approx(fit.model_.loss(whole, mask=mask), rel=1e-9)
    alone = SmartCPD(2, "poisson", random_state=0).fit(whole, mask=mask)
    assert fit.loss_ == pytest.approx(alone.loss_, rel=1e-3)


def test_lists_that_do_not_fit_together_are_refused():
    sparse, dense = _pieces()
    with pytest.raises(InvalidDataError, match="only mode 0 may differ"):
        held_parts([sparse, dense[:, :5]])
    with pytest.raises(InvalidDataError, match="has no entries"):
        held_parts([sparse, np.zeros((3, 20, 10))])


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["2 local", "mm"])
def test_a_killed_worker_loses_nothing(client, folder, in_memory, phase):
    pids, killed = list(client.run(os.getpid).values()), []

    def kill(report):
        if report.record.phase.startswith(phase) and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    fit = _fitted(Cluster(client, local_updates=2), folder, callback=kill)
    assert killed
    assert fit.loss_ == pytest.approx(in_memory, rel=1e-3)
    assert "moved to another worker" in fit.status_.reason


@pytest.mark.slow
def test_a_worker_that_stands_still_is_not_waited_for(client, folder, in_memory, monkeypatch):
    monkeypatch.setattr(pool, "LEAST_PATIENCE", 1.0)
    pids, stopped = list(client.run(os.getpid).values()), []

    def stop(report):
        if report.record.phase == "mm" and not stopped:
            stopped.append(pids[0])
            os.kill(pids[0], signal.SIGSTOP)

    try:
        fit = _fitted(Cluster(client, local_updates=2), folder, callback=stop)
    finally:
        os.kill(pids[0], signal.SIGCONT)
    assert stopped
    assert fit.loss_ == pytest.approx(in_memory, rel=1e-3)
    assert "moved to another worker" in fit.status_.reason


@pytest.mark.slow
def test_a_worker_that_has_all_shards_and_stands_still_is_not_waited_for(
    client, folder, in_memory, monkeypatch
):
    """No other answer tells that this one is late; its silence does."""
    monkeypatch.setattr(heartbeats, "SILENCE", 2.0)
    addresses = client.run(os.getpid)
    home, stopped = min(addresses), []
    monkeypatch.setattr(
        pool, "lightest", lambda workers, homes: home if home in workers else workers[0]
    )

    def stop(report):
        if report.record.phase == "mm" and not stopped:
            stopped.append(home)
            os.kill(addresses[home], signal.SIGSTOP)

    try:
        fit = _fitted(Cluster(client, local_updates=2), folder, callback=stop)
    finally:
        os.kill(addresses[home], signal.SIGCONT)
    assert stopped
    assert fit.loss_ == pytest.approx(in_memory, rel=1e-3)
    assert "moved to another worker" in fit.status_.reason


@pytest.mark.slow
def test_a_lost_scheduler_names_the_checkpoint(folder, tmp_path):
    with (
        dask.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as local,
        dask.Client(local) as lonely,
    ):

        def close(report):
            local.close()

        with pytest.raises(ClusterError, match=r"scheduler .* is gone.*fit-7.*resume=True"):
            _fitted(lonely, folder, callback=close, checkpoint=tmp_path / "fit-7")


def test_what_does_not_fit_is_named_beforehand():
    row_range = RowRange(SHAPE, 0, 0, 399)
    shard = Shard("fit", 3, "x.parts", (4, 5), (row_range,), 2_000_000_000)
    workers = {"tcp://somewhere": {"memory_limit": 1_000_000_000}}
    with pytest.raises(InvalidParameterError, match=r"Shard 3 \(parts 4 to 5, 2,000 MB\).*1 GB"):
        sharing.check_memory([shard], workers)


@pytest.mark.slow
def test_other_data_and_other_clients_are_refused(client, counts):
    with pytest.raises(InvalidParameterError, match=r"must be a distributed\.Client"):
        SmartCPD(2, client=3).fit([counts])
    with pytest.raises(IncompatibleError, match=r"smartcpd\.write\('x\.parts', X\)"):
        SmartCPD(2, client=client).fit(counts)
    with pytest.raises(IncompatibleError, match="solver 'smd' does not"):
        SmartCPD(2, "poisson", solver="smd", client=client).fit([counts])
    with pytest.raises(InvalidParameterError, match="local_updates"):
        Cluster(client, local_updates=0)


def test_parts_are_divided_evenly():
    for counts in ([1] * 7, [9, 1, 1, 1], [1, 1, 1, 9], [5], [1, 100, 1]):
        for n in range(1, len(counts) + 1):
            divided = sharing.divided(counts, n)
            assert len(divided) == n
            assert [k for shard in divided for k in shard] == list(range(len(counts)))


def test_weights_go_along():
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, (8, 5), (20, 2)), axis=0)
    weighted = SparseTensor(cells, 1, (8, 5), weights=rng.random(len(cells)))
    parts = held_parts([weighted, SparseTensor(cells, 2, (8, 5))])
    assert parts.shape == (16, 5)
    assert parts.weighted
    assert parts.n_observed == pytest.approx(weighted.n_observed + 40)
