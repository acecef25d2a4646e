"""Reads damaged files of every kind: an error of ours or a tensor, nothing else.

Run as a process of its own, ``python damaged_files.py FOLDER SEED COUNT [KIND ...]``, with so many
damaged files of each kind, under a limit of memory: a crash ends it, and an error that is not one
of ours is told with the file that it came from.
"""

from __future__ import annotations

import contextlib
import random
import resource
import shutil
import sqlite3
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pandas
import scipy.io
import scipy.sparse
import zarr
from mutations import ways

import smartcpd
from smartcpd import CPModel, LabelledTensor, Mode, SparseTensor
from smartcpd._app.cli.show import summary
from smartcpd._app.run_folder import RunFolder, RunRecord
from smartcpd._data.labelled import taken_off
from smartcpd._fitting.fit import fit
from smartcpd._inference.examination import Examination
from smartcpd._problem.checkpoints.files import read_tree, write_tree
from smartcpd.errors import SmartCPDError

LIMIT = 6 << 30
"""Bytes of address space, most of which compiled code and libraries take."""
SHAPE = (12, 9, 7)


def tensor() -> SparseTensor:
    rng = np.random.default_rng(0)
    return SparseTensor(rng.integers(SHAPE, size=(200, 3)), rng.integers(1, 9, 200), SHAPE)


def labelled() -> LabelledTensor:
    modes = [Mode(f"mode {n}", [f"row {i}" for i in range(size)]) for n, size in enumerate(SHAPE)]
    return LabelledTensor(tensor(), tuple(modes))


def read_tensor(path: Path) -> None:
    X, _ = taken_off(smartcpd.read(path))
    X = X.load() if hasattr(X, "load") else X
    if isinstance(X, SparseTensor):
        X.fiber_indices  # noqa: B018 - compiled code goes over all indices
        X.marginals()
    else:
        smartcpd.explain(X, 2)


def read_parts(path: Path) -> None:
    found, _ = taken_off(smartcpd.read(path))
    model = CPModel([np.ones((size, 2)) for size in found.shape], loss_function="poisson")
    found.some_events(50, np.random.default_rng(0)).unpack_block("float64")
    model.mean([[0, 0, 0]])
    read_tensor(path)


def read_run(path: Path) -> None:
    folder = RunFolder(path)
    run = folder.load()
    summary(run, folder)
    run.shown  # noqa: B018 - shares are found from the factors


def write_run(path: Path) -> None:
    result = fit(labelled(), 2, "poisson", random_state=0, progress=False, max_epochs=5)
    examination = Examination.of(result)
    shown = examination.shown
    quality, diagnosis = examination.figures()
    folder = RunFolder(path)
    folder.path.mkdir()
    record = RunRecord(
        shown.model, result.loss, result.history, result.status, "sparse", {"rank": 2}, {"a": 1},
        quality, None, ("note",), "smartcpd fit", "title", diagnosis=diagnosis,
    )  # fmt: skip
    folder.save_model(record)
    folder.finish(record)


def write_checkpoint(path: Path) -> None:
    write_tree(path, {"d": True, "r": [1, np.arange(99.0)], "w": None, "c": []}, "a fit")


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=tensor().to_dense(), chunks=(6, 9, 7), compression="gzip")


def write_matlab(path: Path) -> None:
    inside = {"subs": np.argwhere(tensor().to_dense()) + 1, "size": np.array(SHAPE)}
    scipy.io.savemat(path, {"T": inside | {"vals": np.ones((len(inside["subs"]), 1))}})


def write_matrix(path: Path) -> None:
    matrix = scipy.sparse.random_array((30, 20), density=0.2, format="csc", random_state=0)
    if path.suffix == ".mat":
        scipy.io.savemat(path, {"S": matrix})
    else:
        scipy.sparse.save_npz(path, matrix, compressed=False)


def write_zarr(path: Path, version: int = 2) -> None:
    held = zarr.create_array(path, shape=SHAPE, chunks=(4, 9, 7), dtype="f8", zarr_format=version)
    held[:] = tensor().to_dense()


def frame() -> pandas.DataFrame:
    """The same entries as the rows of a table, a date and a text among them."""
    rows = np.argwhere(tensor().to_dense())
    dates = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(rows[:, 0], "D")
    named = {"day": dates, "place": [f"row {j}" for j in rows[:, 1]], "kind": rows[:, 2]}
    return pandas.DataFrame(named | {"n": 1.5 + rows[:, 0]})


def write_sqlite(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as base:
        frame().astype({"day": str}).to_sql("x", base, index=False)


def read_table(path: Path) -> None:
    found = smartcpd.from_table(path, modes=["day", "place", "kind"], value="n")
    found.tensor.marginals()


Kind = tuple[str, Callable[[Path], None], Callable[[Path], None]]
KINDS: dict[str, Kind] = {
    "own npz": ("x.npz", lambda path: smartcpd.write(path, labelled()), read_tensor),
    "sparse matrix": ("x.npz", write_matrix, read_tensor),
    "array": ("x.npy", lambda path: np.save(path, tensor().to_dense()), read_tensor),
    "text": ("x.tns", lambda path: smartcpd.write(path, tensor()), read_tensor),
    "packed text": ("x.tns.gz", lambda path: smartcpd.write(path, tensor()), read_tensor),
    "MATLAB": ("x.mat", lambda p: scipy.io.savemat(p, {"X": tensor().to_dense()}), read_tensor),
    "MATLAB, sparse matrix": ("x.mat", write_matrix, read_tensor),
    "MATLAB, sparse tensor": ("x.mat", write_matlab, read_tensor),
    "HDF5": ("x.h5", write_hdf5, read_tensor),
    "netCDF": ("x.nc", lambda path: smartcpd.write(path, labelled()), read_tensor),
    "Zarr 2": ("x.zarr", write_zarr, read_tensor),
    "Zarr 3": ("x.zarr", lambda path: write_zarr(path, 3), read_tensor),
    "parts": ("x.parts", lambda path: smartcpd.write(path, labelled()), read_parts),
    "run": ("run", write_run, read_run),
    "CSV": ("x.csv", lambda path: frame().to_csv(path, index=False), read_table),
    "packed CSV": ("x.csv.gz", lambda path: frame().to_csv(path, index=False), read_table),
    "Parquet": ("x.parquet", lambda path: frame().to_parquet(path), read_table),
    "Arrow": ("x.feather", lambda path: frame().to_feather(path), read_table),
    "JSON lines": (
        "x.jsonl",
        lambda p: frame().to_json(p, orient="records", lines=True),
        read_table,
    ),
    "workbook": ("x.xlsx", lambda path: frame().to_excel(path, index=False), read_table),
    "SQLite": ("x.db", write_sqlite, read_table),
    "checkpoint": ("x.checkpoint", write_checkpoint, lambda path: read_tree(path, "a fit")),
}


def damage_one(path: Path, chance: random.Random) -> str:
    """Damage the file, or one of those in the folder."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    files = [file for file in files if path.is_file() or file.suffix not in (".html", ".csv")]
    target = chance.choice(files)
    way = chance.choice(ways(target))
    target.write_bytes(way(target.read_bytes(), chance))
    return f"{way.__name__} of {target.name}"


def try_kind(kind: str, folder: Path, seed: int, count: int) -> int:
    """Read so many damaged files; return how many gave an error that is not ours."""
    name, write, read = KINDS[kind]
    whole = folder / "whole" / kind / name
    whole.parent.mkdir(parents=True)
    write(whole)
    read(whole)
    foreign = 0
    for number in range(count):
        chance = random.Random(f"{seed} {kind} {number}")
        copy = folder / name
        (shutil.copytree if whole.is_dir() else shutil.copy)(whole, copy)
        what = damage_one(copy, chance)
        print(f"{kind} {number}: {what}", flush=True)  # the last line before a crash
        try:
            read(copy)
        except (SmartCPDError, MemoryError):
            pass
        except BaseException:
            foreign += 1
            print(f"FOREIGN {kind} {number}: {what}", traceback.format_exc(), flush=True)
        shutil.rmtree(copy) if copy.is_dir() else copy.unlink()
    return foreign


def main(folder: str, seed: str, count: str, *kinds: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    warnings.simplefilter("ignore")
    names = kinds or tuple(KINDS)
    foreign = sum(try_kind(kind, Path(folder), int(seed), int(count)) for kind in names)
    print(f"{int(count) * len(names)} damaged files, {foreign} foreign errors")
    sys.exit(foreign > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
