"""A checkpoint belongs to one fit of one data set, and its folder to one process at a time."""

import os
import shutil

import numpy as np
import pytest
import zarr

import smartcpd
from smartcpd import SparseTensor, datasets
from smartcpd._data.opening import as_storage
from smartcpd._fitting.fit import fit
from smartcpd._problem.checkpoints.identity import data_digest
from smartcpd.errors import CheckpointError
from smartcpd.partitions import PartitionedTensor

COUNTS, _ = datasets.count((14, 12, 10), 3, a_max=1.5, random_state=1)


def fitted(folder, seed=0, **more):
    return fit(
        COUNTS, 3, "poisson", solver="mm", random_state=seed, checkpoint=folder,
        checkpoint_every=0, max_epochs=20, progress=False, **more,
    )  # fmt: skip


def test_the_state_of_another_fit(tmp_path):
    fitted(tmp_path / "one", seed=1)
    fitted(tmp_path / "two", seed=2)
    [state] = (tmp_path / "one").glob("*.checkpoint")
    shutil.copy(state, tmp_path / "two")
    with pytest.raises(CheckpointError, match=r"is of another fit than the checkpoint\.json"):
        fitted(tmp_path / "two", seed=2, resume=True)


def test_two_fits_on_one_folder(tmp_path):
    def intrude(report):
        with pytest.raises(CheckpointError, match=rf"Another fit \(process {os.getpid()}\)"):
            fitted(tmp_path, resume=True)
        return True

    fitted(tmp_path, callback=intrude)
    fitted(tmp_path, resume=True)  # the first has let go of the folder


def test_one_row_of_a_large_array():
    X = np.zeros((300, 30_000))
    before = data_digest(as_storage(X))
    X[8, 17] = 1
    assert data_digest(as_storage(X)) != before


def test_signs_and_swaps():
    X = np.random.default_rng(0).random((40, 30))
    seen = {data_digest(as_storage(X))}
    for one, other in (((0, 0), (0, 8)), ((0, 0), (39, 29)), ((5, 1), (5, 17))):
        flipped, swapped = X.copy(), X.copy()
        flipped[one], flipped[other] = -flipped[one], -flipped[other]
        swapped[one], swapped[other] = X[other], X[one]
        seen |= {data_digest(as_storage(Y)) for Y in (flipped, swapped)}
    assert len(seen) == 7


def test_the_order_in_memory_does_not_matter():
    X = np.random.default_rng(0).random((30, 20, 10))
    assert data_digest(as_storage(X)) == data_digest(as_storage(np.asfortranarray(X)))


def test_any_chunk_on_disk(tmp_path):
    shape, path = (24, 30, 40), tmp_path / "x.zarr"
    held = zarr.create_array(path, shape=shape, chunks=(2, 15, 20), dtype="f8")
    held[:] = np.random.default_rng(0).random(shape)

    def digest():
        return data_digest(as_storage(zarr.open(path, mode="r"), max_memory=200_000))

    before = digest()
    assert digest() == before
    chunks = [file for file in (path / "c").rglob("*") if file.is_file()]
    for chunk in chunks:
        about = chunk.stat()
        os.utime(chunk, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
        assert digest() != before
        os.utime(chunk, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert digest() == before


def test_any_part(tmp_path):
    rng = np.random.default_rng(0)
    X = SparseTensor(rng.integers((40, 30, 20), size=(2000, 3)), 1, (40, 30, 20))
    path = tmp_path / "x.parts"
    smartcpd.partitions.write_tensor(path, X, part_bytes=1000)
    before = data_digest(PartitionedTensor.open(path))
    for part in path.glob("*.parquet"):
        content = part.read_bytes()
        part.write_bytes(content[:-9] + b"x" + content[-8:])
        assert data_digest(PartitionedTensor.open(path)) != before
        part.write_bytes(content)
    assert data_digest(PartitionedTensor.open(path)) == before
