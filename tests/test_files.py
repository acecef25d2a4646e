"""Tensors come back from files as they went in, and bad files are refused in a sentence."""

import gzip
import zipfile

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import xarray
import zarr

import smartcpd
from smartcpd import LabelledTensor, Mode, SparseTensor
from smartcpd.errors import (
    DataNotFoundError,
    IncompatibleError,
    InvalidDataError,
    InvalidParameterError,
)

DENSE = np.arange(24.0).reshape(2, 3, 4)
SPARSE = SparseTensor([[0, 1, 2], [1, 0, 3], [1, 2, 0]], [3, 1, 7], shape=(2, 3, 4))
MODES = (
    Mode("day", np.array(["2024-01-01", "2024-01-02"], "M8[D]")),
    Mode("who", ["ann", "bob", "<cy>"]),
    Mode("hour", np.arange(4), "cycle"),
)


def same(found, expected):
    if isinstance(expected, SparseTensor):
        assert isinstance(found, SparseTensor)
        assert found.shape == expected.shape
        assert found.absent == expected.absent
        assert np.array_equal(found.values, expected.values)
        assert all(map(np.array_equal, found.indices, expected.indices))
    else:
        assert np.array_equal(found, expected)
    return True


@pytest.mark.parametrize("name", ["X.npy", "X.npz", "X.zarr", "X.h5"])
def test_dense(name, tmp_path):
    smartcpd.write(tmp_path / name, DENSE)
    assert same(smartcpd.read(tmp_path / name), DENSE)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["X.tns", "X.tns.gz", "X.npz"])
@pytest.mark.parametrize("tensor", [SPARSE, DENSE])
def test_sparse(name, tensor, tmp_path):
    smartcpd.write(tmp_path / name, tensor)
    found = smartcpd.read(tmp_path / name)
    assert same(found.to_dense() if tensor is DENSE and "tns" in name else found, tensor)


def test_a_sparse_tensor_is_filled_for_formats_that_store_every_cell(tmp_path):
    smartcpd.write(tmp_path / "X.npy", SPARSE)
    assert same(smartcpd.read(tmp_path / "X.npy"), SPARSE.to_dense())
    with pytest.raises(InvalidParameterError, match="bytes"):
        smartcpd.write(tmp_path / "Y.npy", SparseTensor([[0, 0], [1, 1]], 1, (10**5, 10**6)))
    assert not (tmp_path / "Y.npy").exists()


@pytest.mark.parametrize(("name", "tensor"), [("X.npz", SPARSE), ("X.npz", DENSE), ("X.nc", DENSE)])
def test_labels_are_kept(name, tensor, tmp_path):
    smartcpd.write(tmp_path / name, LabelledTensor(tensor, MODES))
    found = smartcpd.read(tmp_path / name)
    assert same(found.tensor, tensor)
    assert [m.name for m in found.modes] == ["day", "who", "hour"]
    assert found.modes[1].text() == ["ann", "bob", "<cy>"]
    assert np.array_equal(found.modes[0].labels, MODES[0].labels)
    if name == "X.npz":
        assert found.modes == MODES


def test_unobserved_cells_stay_so(tmp_path):
    smartcpd.write(tmp_path / "X.npz", SPARSE.with_absent("unobserved"))
    assert smartcpd.read(tmp_path / "X.npz").absent == "unobserved"
    smartcpd.write(tmp_path / "X.tns", SPARSE)
    assert smartcpd.read(tmp_path / "X.tns", absent="unobserved").absent == "unobserved"
    np.save(tmp_path / "X.npy", DENSE)
    with pytest.raises(IncompatibleError, match="stores every cell"):
        smartcpd.read(tmp_path / "X.npy", absent="unobserved")


def test_large_npy_is_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr("smartcpd._data.tiled.opening.MAPPED", 100)
    np.save(tmp_path / "X.npy", DENSE)
    assert isinstance(smartcpd.read(tmp_path / "X.npy"), np.memmap)


def test_scipy_archive(tmp_path):
    scipy.sparse.save_npz(tmp_path / "X.npz", scipy.sparse.csr_array(np.eye(3)))
    assert same(smartcpd.read(tmp_path / "X.npz").to_dense(), np.eye(3))


def test_one_of_several_arrays(tmp_path):
    np.savez(tmp_path / "X.npz", a=DENSE, b=DENSE + 1, names=np.array(["x"]))
    assert same(smartcpd.read(f"{tmp_path}/X.npz::b"), DENSE + 1)
    with pytest.raises(InvalidDataError, match=r"a \(2x3x4\), b \(2x3x4\); choose one.*::a"):
        smartcpd.read(tmp_path / "X.npz")
    with pytest.raises(InvalidDataError, match=r"::c is not there"):
        smartcpd.read(f"{tmp_path}/X.npz::c")


class TestMatlab:
    def test_version_5(self, tmp_path):
        scipy.io.savemat(tmp_path / "X.mat", {"X": DENSE, "n": 3.0, "v": np.ones(5), "s": "text"})
        assert same(smartcpd.read(tmp_path / "X.mat"), DENSE)

    @pytest.mark.parametrize("packed", [False, True])
    def test_what_scipy_writes_is_what_it_reads(self, packed, tmp_path):
        rng = np.random.default_rng(0)
        kinds = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f8", "c16")
        written = {f"x{n}": (9 * rng.random((4, 3, 2))).astype(k) for n, k in enumerate(kinds)}
        written["sparse"] = scipy.sparse.random_array((30, 20), density=0.2, random_state=0)
        written |= {"text": "abc", "cell": np.array([1, "a"], object), "empty": np.empty((0, 3))}
        scipy.io.savemat(tmp_path / "x.mat", written, do_compression=packed)
        for name, kind in enumerate(kinds[:-1]):
            found = smartcpd.read(f"{tmp_path / 'x.mat'}::x{name}")
            assert found.dtype == np.dtype(kind).newbyteorder("=")
            np.testing.assert_array_equal(found, written[f"x{name}"])
        sparse = smartcpd.read(f"{tmp_path / 'x.mat'}::sparse")
        np.testing.assert_array_equal(sparse.to_dense(), written["sparse"].toarray())
        with pytest.raises(InvalidDataError, match="complex numbers"):
            smartcpd.read(f"{tmp_path / 'x.mat'}::x12")
        with pytest.raises(InvalidDataError, match="text does not hold numbers"):
            smartcpd.read(f"{tmp_path / 'x.mat'}::text")

    def test_several(self, tmp_path):
        scipy.io.savemat(tmp_path / "X.mat", {"X": DENSE, "Y": DENSE})
        with pytest.raises(InvalidDataError, match=r"X .*Y .*choose one"):
            smartcpd.read(tmp_path / "X.mat")
        assert same(smartcpd.read(f"{tmp_path}/X.mat::Y"), DENSE)

    def test_sparse_matrix(self, tmp_path):
        scipy.io.savemat(tmp_path / "X.mat", {"X": scipy.sparse.csc_array(np.eye(3))})
        assert same(smartcpd.read(tmp_path / "X.mat").to_dense(), np.eye(3))

    def test_sparse_tensor_of_the_toolbox(self, tmp_path):
        subs = np.stack(SPARSE.indices, axis=1).astype(float) + 1
        record = {"subs": subs, "vals": SPARSE.values[:, None], "size": np.array([[2.0, 3.0, 4.0]])}
        scipy.io.savemat(tmp_path / "X.mat", {"X": record})
        assert same(smartcpd.read(tmp_path / "X.mat"), SPARSE)

    def test_version_7_3_has_its_modes_in_reverse(self, tmp_path):
        with h5py.File(tmp_path / "X.mat", "w", userblock_size=512) as file:
            file["X"] = DENSE.T
            file["#refs#/a"] = DENSE
        with open(tmp_path / "X.mat", "r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file")
        assert same(smartcpd.read(tmp_path / "X.mat"), DENSE)

    def test_is_only_read(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="only read"):
            smartcpd.write(tmp_path / "X.mat", DENSE)


def test_hdf5_by_name(tmp_path):
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["run/counts"] = DENSE
        file["run/other"] = DENSE
    assert same(smartcpd.read(f"{tmp_path}/X.h5::run/counts"), DENSE)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(version, tmp_path):
    zarr.save_array(tmp_path / "X.zarr", DENSE, zarr_format=version)
    assert same(smartcpd.read(tmp_path / "X.zarr"), DENSE)


def test_zarr_group(tmp_path):
    group = zarr.open_group(tmp_path / "X.zarr", mode="w")
    group.create_array("a", data=DENSE)
    assert same(smartcpd.read(tmp_path / "X.zarr"), DENSE)
    group.create_array("b", data=DENSE)
    with pytest.raises(InvalidDataError, match="choose one"):
        smartcpd.read(tmp_path / "X.zarr")


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])
def test_netcdf(engine, tmp_path):
    array = xarray.DataArray(DENSE, dims=["a", "b", "c"], coords={"b": ["x", "y", "z"]}, name="X")
    array.to_netcdf(tmp_path / "X.nc", engine=engine)
    found = smartcpd.read(tmp_path / "X.nc")
    assert same(found.tensor, DENSE)
    assert found.modes[1] == Mode("b", ["x", "y", "z"])


def halved(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


class TestBadFiles:
    @pytest.mark.parametrize("suffix", [".tns", ".npy", ".npz", ".mat", ".zarr", ".nc", ".h5"])
    def test_missing(self, suffix, tmp_path):
        with pytest.raises(DataNotFoundError, match="does not exist"):
            smartcpd.read(tmp_path / f"X{suffix}")

    @pytest.mark.parametrize("suffix", [".tns.gz", ".npy", ".npz", ".nc", ".h5"])
    def test_truncated(self, suffix, tmp_path):
        path = tmp_path / f"X{suffix}"
        smartcpd.write(path, np.random.default_rng(0).random((20, 20, 20)))
        halved(path)
        with pytest.raises(InvalidDataError, match=r"truncated|decompressed"):
            smartcpd.read(path)

    def test_truncated_matlab(self, tmp_path):
        scipy.io.savemat(tmp_path / "X.mat", {"X": DENSE})
        halved(tmp_path / "X.mat")
        with pytest.raises(InvalidDataError, match=r"truncated, damaged|holds no numeric"):
            smartcpd.read(tmp_path / "X.mat")

    def test_damaged_archive(self, tmp_path):
        np.savez_compressed(tmp_path / "X.npz", X=np.arange(1e4).reshape(100, 100))
        content = bytearray((tmp_path / "X.npz").read_bytes())
        content[200:260] = bytes(60)
        (tmp_path / "X.npz").write_bytes(content)
        with pytest.raises(InvalidDataError, match=r"truncated or damaged"):
            smartcpd.read(tmp_path / "X.npz")

    @pytest.mark.parametrize("suffix", [".npy", ".npz", ".mat", ".nc", ".h5"])
    def test_something_else(self, suffix, tmp_path):
        path = tmp_path / f"X{suffix}"
        path.write_text("a,b\n1,2\n" * 200)
        with pytest.raises(InvalidDataError, match="cannot be read as"):
            smartcpd.read(path)

    @pytest.mark.parametrize("name", ["X.npy", "X.npz"])
    def test_pickles_are_never_loaded(self, name, tmp_path):
        array = np.array([[{}, 1], [2, 3]], dtype=object)
        if name.endswith("y"):
            np.save(tmp_path / name, array, allow_pickle=True)
        else:
            np.savez(tmp_path / name, X=array)
        with pytest.raises(InvalidDataError, match="never loaded because that can run code"):
            smartcpd.read(tmp_path / name)

    def test_text_and_complex_numbers(self, tmp_path):
        np.save(tmp_path / "X.npy", np.array([["a", "b"]]))
        with pytest.raises(InvalidDataError, match="holds text"):
            smartcpd.read(tmp_path / "X.npy")
        np.save(tmp_path / "X.npy", 1j * DENSE)
        with pytest.raises(InvalidDataError, match="complex numbers"):
            smartcpd.read(tmp_path / "X.npy")

    def test_an_archive_without_arrays(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "X.npz", "w"):
            pass
        with pytest.raises(InvalidDataError, match="holds no numeric array"):
            smartcpd.read(tmp_path / "X.npz")

    def test_a_hole_in_a_text_file(self, tmp_path):
        (tmp_path / "X.tns").write_text("1 1 1 2\n1 2 3\n")
        with pytest.raises(InvalidDataError, match=r"line 2.*3 columns.*4"):
            smartcpd.read(tmp_path / "X.tns")

    def test_gzip_cut_short(self, tmp_path):
        with gzip.open(tmp_path / "X.tns.gz", "wb") as file:
            file.write(b"1 1 1 2\n" * 5000)
        halved(tmp_path / "X.tns.gz")
        with pytest.raises(InvalidDataError, match="cannot be decompressed"):
            smartcpd.read(tmp_path / "X.tns.gz")

    @pytest.mark.parametrize(
        ("name", "hint"), [("X.csv.gz", "from_table"), ("X.pkl", "must end with")]
    )
    def test_names(self, name, hint, tmp_path):
        with pytest.raises(InvalidParameterError, match=hint):
            smartcpd.read(tmp_path / name)

    def test_a_member_of_a_single_array(self, tmp_path):
        np.save(tmp_path / "X.npy", DENSE)
        with pytest.raises(InvalidParameterError, match="leave out '::a'"):
            smartcpd.read(f"{tmp_path}/X.npy::a")

    def test_a_missing_folder(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="not a directory"):
            smartcpd.write(tmp_path / "no" / "X.npy", DENSE)
