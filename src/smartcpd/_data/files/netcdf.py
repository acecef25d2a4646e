"""netCDF files: a variable with the names and coordinates of its dimensions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from smartcpd._common.atomic import replaced
from smartcpd._common.memory import check_claim
from smartcpd._data.files.content import dense_array, real_array
from smartcpd._data.files.format import Format, chosen_member, damaged, library
from smartcpd._data.files.hdf5 import check_within
from smartcpd._data.files.hdf5_heaps import check_heaps
from smartcpd._data.labelled import LabelledTensor, taken_off
from smartcpd.errors import SmartCPDError

CLASSIC = b"CDF"
"""The first bytes of files of netCDF 3; those of netCDF 4 are HDF5."""


def _xarray(path: Path) -> Any:
    return library(path, "h5netcdf", "xarray")  # xarray needs the first and says so less clearly


def _read(path: Path, member: str | None) -> LabelledTensor:
    xarray = _xarray(path)
    with open(path, "rb") as file:
        engine = "scipy" if file.read(len(CLASSIC)) == CLASSIC else "h5netcdf"
    if engine == "h5netcdf":
        check_heaps(path)
        check_within(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # xarray warns about how dates are decoded
            dataset = xarray.open_dataset(path, engine=engine)
        with dataset:
            variables = dict(dataset.data_vars)
            shapes = {str(k): v.shape for k, v in variables.items() if v.dtype.kind in "buif"}
            name = chosen_member(path, member, shapes, [str(k) for k in variables])
            check_claim(path, dataset[name].nbytes)
            array = dataset[name].load()
    except (SmartCPDError, MemoryError):
        raise
    except Exception as error:  # the libraries beneath xarray have error types of their own
        raise damaged(path, "netCDF", error) from None
    tensor, modes = taken_off(array)
    assert modes is not None
    return LabelledTensor(real_array(path, tensor), modes)


def _write(path: Path, X: Any) -> None:
    xarray = _xarray(path)
    array = dense_array(path, X)
    _, modes = taken_off(X)
    dims = [f"mode_{n}" for n in range(array.ndim)] if modes is None else [m.name for m in modes]
    coords = {} if modes is None else {mode.name: mode.labels for mode in modes}
    variable = xarray.DataArray(array, dims=dims, coords=coords, name="X")
    with replaced(path) as temporary:
        variable.to_netcdf(temporary, engine="h5netcdf")


FORMAT = Format("netCDF", (".nc", ".nc4"), _read, _write)
