"""Files that claim more than there is are refused with figures, before anything is read."""

import h5py
import numpy as np
import pytest
import zarr

import smartcpd
from smartcpd import SmartCPD
from smartcpd.errors import InvalidDataError, InvalidParameterError

MEMORY = "500MB"


def claiming(path, shape, chunks):
    return zarr.create_array(path, shape=shape, chunks=chunks, dtype="f8")


@pytest.mark.parametrize(
    ("shape", "chunks", "message"),
    [
        ((2**40, 2, 2), (2**20, 2, 2), "the limit is 4,294,967,296"),
        ((2**31, 9, 9), (1, 9, 9), "2,147,483,648 chunks"),
        ((300, 300, 300), (1, 1, 1), "27,000,000 chunks of about 1 cells"),
        ((40, 40, 40), (1, 1, 1), "64,000 chunks of about 1 cells"),
        ((10**6, 10**6, 10**6), (200, 200, 200), r"claims 8e\+06 TB"),
    ],
)
def test_zarr(shape, chunks, message, tmp_path):
    claiming(tmp_path / "x.zarr", shape, chunks)
    with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
        SmartCPD(2, max_memory=MEMORY).fit(smartcpd.read(tmp_path / "x.zarr", max_memory=MEMORY))


def test_hdf5_and_matlab(tmp_path):
    for name in ("x.h5", "x.mat"):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("X", (10**5, 10**5, 10**5), chunks=(100, 100, 100), dtype="f4")
    with pytest.raises(InvalidParameterError, match=r"claims 4e[+]03 TB"):
        SmartCPD(2, max_memory=MEMORY).fit(smartcpd.read(tmp_path / "x.h5"))
    with pytest.raises(InvalidDataError, match=r"claims to hold 4e[+]03 TB, and this machine has"):
        smartcpd.read(tmp_path / "x.mat")


def test_npz(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((400, 300)))
    monkeypatch.setattr("smartcpd._common.memory.of_machine", lambda: 100_000)
    with pytest.raises(InvalidDataError, match="claims to hold 960 kB, and this machine has"):
        smartcpd.read(tmp_path / "x.npz")


def test_a_fit_without_time_does_not_read_everything_in_the_end(tmp_path, monkeypatch):
    X = claiming(tmp_path / "x.zarr", (60, 50, 40), (20, 25, 20))
    X[:] = np.random.default_rng(0).poisson(3.0, X.shape)

    def refused(*args):
        raise AssertionError("every block is read")

    monkeypatch.setattr("smartcpd._data.tiled.storage.TiledArray.all_blocks", refused)
    asked = SmartCPD(2, "poisson", max_memory=1_000_000, max_time=1e-3, random_state=0)
    assert asked.fit(X).solver_ == "tiled"
