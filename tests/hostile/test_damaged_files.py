"""Files are untrusted: whatever is in them ends in one sentence of ours, or in a tensor."""

import contextlib
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pandas
import pytest
import scipy.sparse
import zarr

import smartcpd
from smartcpd import LabelledTensor, Mode, SmartCPD, SparseTensor
from smartcpd._data.files.zarr import refuse_code
from smartcpd.errors import InvalidDataError, SmartCPDError

HERE = Path(__file__).parent
COUNT = int(os.environ.get("SMARTCPD_SOAK_FILES", "8"))
SEED = os.environ.get("SMARTCPD_SOAK_SEED", "0")


def read_in_child(folder, *kinds):
    """Read damaged files in a process of its own, which a crash would end."""
    script = [sys.executable, HERE / "damaged_files.py", folder, SEED, str(COUNT), *kinds]
    return subprocess.run(script, capture_output=True, text=True, timeout=60 + COUNT)


@pytest.mark.slow
def test_damaged_files_of_every_kind(tmp_path):
    done = read_in_child(tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert ", 0 foreign errors" in done.stdout


def test_pointers_that_lie(tmp_path):
    X = scipy.sparse.random_array((50, 40), density=0.1, format="csr", random_state=0)
    X.indptr[3] = 2**30
    scipy.sparse.save_npz(tmp_path / "x.npz", X)
    with pytest.raises(InvalidDataError, match=r"The pointers \(indptr\) of X"):
        smartcpd.read(tmp_path / "x.npz")


def test_an_index_beyond_the_shape(tmp_path):
    path = tmp_path / "x.parts"
    smartcpd.write(path, SparseTensor([[0, 0], [5, 1], [9, 3]], [1, 2, 3], shape=(10, 4)))
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["shape"] = [10, 3]
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidDataError, match=r"figures\.npz is damaged"):
        smartcpd.read(path)
    with np.load(path / "figures.npz") as held:
        figures = dict(held)
    figures |= {"sample_1": figures["sample_1"] % 3}
    figures |= {name: figures[name][:3] for name in ("marginals_1", "row_weights_1")}
    np.savez(path / "figures.npz", **figures)
    with pytest.raises(InvalidDataError, match="index 3 of mode 1 is not among its rows, 0 to 2"):
        smartcpd.read(path).load()


@pytest.mark.parametrize(
    ("name", "value"),
    [("first", -1), ("last", 99), ("nnz", 10**12), ("file", "../x.parquet"), ("lowest", "x")],
)
def test_manifests_that_lie(name, value, tmp_path):
    path = tmp_path / "x.parts"
    smartcpd.write(path, SparseTensor([[0, 0], [5, 1], [9, 3]], [1, 2, 3], shape=(10, 4)))
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["parts"][0][name] = value
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidDataError, match="is damaged"):
        smartcpd.read(path).load()


def test_a_part_in_which_names_are_no_text(tmp_path, monkeypatch):
    """DuckDB quotes such a name in its error, which is then no text either."""
    path = tmp_path / "x.parts"
    smartcpd.write(path, SparseTensor([[0, 0], [5, 1], [9, 3]], [1, 2, 3], shape=(10, 4)))

    class Connection(contextlib.nullcontext):
        def __enter__(self):
            return self

        def execute(self, query):
            b"\xb4".decode()

    monkeypatch.setattr("smartcpd.partitions.parquet._connection", Connection)
    with pytest.raises(InvalidDataError, match="cannot be read"):
        smartcpd.read(path, max_memory=1).load()


JUNK = [None, True, -1, 1.5, 10**400, "text", [], [None], [[1]], {}, {"a": 1}, [-1, 2, 3], ["", 1]]


def test_manifests_with_fields_of_other_kinds(tmp_path):
    """Every field in turn holds what does not belong there: a sentence, or the same tensor."""
    path = tmp_path / "a.parts"
    smartcpd.write(path, SparseTensor([[0, 1, 2], [2, 0, 1]], [3, 4], (3, 3, 3)))
    whole = json.loads((path / "manifest.json").read_text())
    for name in [*whole, *(("parts", field) for field in whole["parts"][0])]:
        for junk in JUNK:
            manifest = json.loads(json.dumps(whole))
            if isinstance(name, tuple):
                manifest["parts"][0][name[1]] = junk
            else:
                manifest[name] = junk
            (path / "manifest.json").write_text(json.dumps(manifest))
            with contextlib.suppress(SmartCPDError):
                smartcpd.read(path)


def test_figures_that_are_no_arrays(tmp_path):
    path = tmp_path / "x.parts"
    smartcpd.write(path, SparseTensor([[0, 0], [5, 1], [9, 3]], [1, 2, 3], shape=(10, 4)))
    with zipfile.ZipFile(path / "figures.npz") as whole:
        content = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path / "figures.npz", "w") as damaged:
        for name, data in content.items():
            damaged.writestr(name, b"nothing" if name == "marginals_0.npy" else data)
    with pytest.raises(InvalidDataError, match=r"figures\.npz is damaged .marginals_0 is no array"):
        smartcpd.read(path)


def test_a_raw_pickle_under_the_name_of_matlab(tmp_path):
    (tmp_path / "x.mat").write_bytes(pickle.dumps({"X": list(range(300))}))
    with pytest.raises(InvalidDataError, match="cannot be read as a MATLAB file"):
        smartcpd.read(tmp_path / "x.mat")


def test_a_damaged_chunk(tmp_path):
    X = np.random.default_rng(0).random((8, 6, 5))
    held = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, chunks=(4, 6, 5), dtype="f8")
    held[:] = X
    (tmp_path / "x.zarr" / "c" / "1" / "0" / "0").write_bytes(b"nothing")
    with pytest.raises(InvalidDataError, match=r"cannot be read from a Zarr array"):
        smartcpd.read(tmp_path / "x.zarr")
    with pytest.raises(InvalidDataError, match=r"X\[0:8, 0:6, 0:5\] cannot be read"):
        SmartCPD(2, max_memory=4000).fit(zarr.open(tmp_path / "x.zarr"))


class Runs:
    """An object whose pickle writes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_a_codec_that_runs_what_it_reads(place, tmp_path):
    """With older versions of Zarr and its codecs that work otherwise, this ran."""
    codec = {"id": "pickle", "protocol": 4}
    header = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f8", "order": "C"}
    header |= {"fill_value": 0, "filters": None, "compressor": None}
    header |= {place: [codec] if place == "filters" else codec}
    path = tmp_path / "x.zarr"
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(header))
    (path / "0").write_bytes(pickle.dumps([Runs(tmp_path / "was here"), "|O", [1]]))
    with pytest.raises(InvalidDataError, match="pickle"):
        smartcpd.explain(smartcpd.read(path), 1)
    assert not (tmp_path / "was here").exists()


@pytest.mark.parametrize(
    "metadata",
    [
        {"filters": (SimpleNamespace(codec_id="pickle"),), "compressor": None},
        {"codecs": [{"name": "sharding_indexed", "configuration": {
            "codecs": [{"name": "numcodecs.pickle"}]}}]},
    ],
)  # fmt: skip
def test_codecs_are_found_wherever_they_are_named(metadata):
    with pytest.raises(InvalidDataError, match="runs programs that are in a file"):
        refuse_code(Path("x.zarr"), metadata)
    refuse_code(Path("x.zarr"), {"attributes": {"name": "a pickle"}, "codecs": [{"name": "zstd"}]})


def test_chunks_of_no_size(tmp_path):
    zarr.create_array(tmp_path / "x.zarr", shape=(8, 6), chunks=(4, 6), dtype="f8", zarr_format=2)
    head = tmp_path / "x.zarr" / ".zarray"
    head.write_text(json.dumps(json.loads(head.read_text()) | {"chunks": [0, 6]}))
    with pytest.raises(InvalidDataError, match=r"chunks have the sizes \(0, 6\), which cannot be"):
        smartcpd.read(tmp_path / "x.zarr")


def test_names_of_columns_that_are_no_text(tmp_path):
    path = tmp_path / "x.feather"
    pandas.DataFrame({"place": ["a", "b"], "kind": [1, 2], "n": [3, 4]}).to_feather(path)
    path.write_bytes(path.read_bytes().replace(b"place", b"pl\xff\xfee"))
    with pytest.raises(InvalidDataError, match=r"Reading '.*x.feather' failed: .* it is damaged"):
        smartcpd.from_table(path, modes=["place", "kind"], value="n")


def test_texts_that_begin_beyond_their_column(tmp_path):
    path = tmp_path / "x.feather"
    names = [f"a place of number {n}" for n in range(40)]
    table = pandas.DataFrame({"place": names, "kind": range(40), "n": 1.5})
    table.to_feather(path, compression="uncompressed")
    starts = np.cumsum([0, *map(len, names)]).astype("<i4")
    lies = np.append(starts[:-1] + (1 << 30), starts[-1]).astype("<i4")
    content = path.read_bytes()
    width = next(kind for kind in ("<i4", "<i8") if starts.astype(kind).tobytes() in content)
    path.write_bytes(content.replace(starts.astype(width).tobytes(), lies.astype(width).tobytes()))
    with pytest.raises(InvalidDataError, match="cannot be read as an Arrow file"):
        smartcpd.from_table(path, ["place", "kind"], "n")


def test_a_database_that_quotes_what_is_no_text(tmp_path):
    path = tmp_path / "x.db"
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE places (place, kind, n)")
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE \xc2\xc2\xc2\xc2\xc2"))
    with pytest.raises(InvalidDataError, match="cannot be read as a SQLite database"):
        smartcpd.from_table(path, modes=["place", "kind"], value="n")


def test_times_that_python_does_not_have(tmp_path):
    days = np.array(["2024-01-01", "49212-03-01"], "datetime64[s]")
    table = pandas.DataFrame({"day": days, "place": ["a", "b"]})
    table.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InvalidDataError, match=r"'day' has times from 2024-01-01.* to 49212-03-01"):
        smartcpd.from_table(tmp_path / "x.parquet", modes=["day", "place"])
    found = smartcpd.from_table(tmp_path / "x.parquet", modes=["day", "place"], bins={"day": "99y"})
    assert found.tensor.nnz == 2


def test_a_heap_in_which_the_library_would_run_for_ever(tmp_path):
    """The object behind the first one has no length, so that nothing comes after it."""
    path = tmp_path / "x.nc"
    modes = (Mode("place", ["a", "b"]), Mode("kind", ["c", "d", "e"]))
    smartcpd.write(path, LabelledTensor(np.ones((2, 3)), modes))
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    second = heap + 16 + 16 + 8
    assert content[second] == 2
    content[second : second + 16] = bytes(16)
    path.write_bytes(content)
    with pytest.raises(InvalidDataError, match=f"the heap at byte {heap} has an object of a wrong"):
        smartcpd.read(path)


@pytest.mark.parametrize("suffix", ["h5", "nc"])
@pytest.mark.parametrize("way", ["external", "virtual", "link"])
def test_files_that_lead_to_others(way, suffix, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["X"] = np.ones((3, 4))
    path = tmp_path / f"x.{suffix}"
    with h5py.File(path, "w") as file:
        if way == "external":
            file.create_dataset("X", (3, 4), "f8", external=[(tmp_path / "other.h5", 0, 96)])
        elif way == "virtual":
            layout = h5py.VirtualLayout((3, 4), "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "X", (3, 4))
            file.create_virtual_dataset("X", layout)
        else:
            file["X"] = h5py.ExternalLink(tmp_path / "other.h5", "X")
    with pytest.raises(InvalidDataError, match=r"lies in other files|holds no numeric array"):
        smartcpd.read(path)


def test_a_file_that_is_cut_while_it_is_used(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((300, 20)))
    X = smartcpd.read(path)
    os.truncate(path, 100)
    assert X.sum() == 6000
