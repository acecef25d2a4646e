"""Models in files: arrays in an npz, everything else in a JSON beside it, never a pickle."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._common.archives import archived
from smartcpd._common.atomic import replace_file
from smartcpd._common.version import __version__
from smartcpd._data.exposure import Exposure
from smartcpd._data.labels import Mode
from smartcpd._fitting.model import CPModel
from smartcpd.errors import InvalidDataError, InvalidParameterError, ModelNotFoundError
from smartcpd.losses import Loss

FORMAT = "smartcpd-model"
FORMAT_VERSION = 1
RUN_MODEL = "model"
"""The name of the model in the folder of a run."""


def save(model: CPModel, path: str | os.PathLike[str], run: dict[str, Any] | None = None) -> Path:
    """Write <path>.npz and <path>.json; see `CPModel.save`.

    ``run`` is what else the JSON should tell, about the fit that made the model.
    """
    npz, header = _paths(path)
    if not npz.parent.is_dir():
        raise InvalidParameterError(
            f"Cannot save to {npz}: {npz.parent} is not a directory. Create it first."
        )
    arrays = {_factor_key(n): A for n, A in enumerate(model.factors)}
    arrays |= _exposure_arrays(model.exposure)
    content = archived({"weights": model.weights} | arrays, compressed=True)
    replace_file(npz, content)
    description = _describe(model, content) | ({} if run is None else _told(run))
    replace_file(header, _lines(description).encode())
    return npz


def tell(path: str | os.PathLike[str], run: dict[str, Any]) -> None:
    """Replace what a saved model's JSON tells about the fit; the model stays as it is."""
    header = _paths(path)[1]
    replace_file(header, _lines(_read_header(header) | _told(run)).encode())


def load(path: str | os.PathLike[str], loss: Loss | str | None = None) -> CPModel:
    """Read what `save` wrote; see `CPModel.load`."""
    npz, header = _paths(path)
    if Path(path).is_dir() and not npz.is_file():
        npz, header = _paths(Path(path) / RUN_MODEL)
    for file in (npz, header):
        if not file.is_file():
            raise ModelNotFoundError(
                f"{file} does not exist. A saved model is two files, {npz.name} and {header.name}."
            )
    description = _read_header(header)
    content = npz.read_bytes()
    # Also catches a crash between the two writes, which leaves new arrays with an old header.
    if _digest(content) != description["sha256"]:
        raise InvalidDataError(
            f"{npz} is not the file that {header.name} describes: it is truncated, damaged or from "
            "another save. Save the model again."
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            weights = arrays["weights"]
            factors = [arrays[_factor_key(n)] for n in range(len(description["shape"]))]
            exposure = _restored_exposure(description, arrays)
    except Exception as error:  # NumPy lets errors of its parsers through, of many types
        raise InvalidDataError(f"{npz} does not hold the arrays of a model: {error}.") from error
    if [len(A) for A in factors if A.ndim] != description["shape"]:
        raise InvalidDataError(
            f"{header} tells of shape {description['shape']}, and {npz.name} holds another: one of "
            "them was edited. Save the model again."
        )
    modes = _restored_modes(description, header)
    return CPModel(factors, weights, _restored_loss(description, header, loss), modes, exposure)


def read_run(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return what a saved model's JSON tells about the fit, if anything."""
    header = _paths(path)[1]
    description = _read_header(header)
    run = description.get("run")
    if not isinstance(run, dict):
        return None
    if "run_sha256" not in description:
        command = run.get("command")
        again = f", as by: {command}" if isinstance(command, str) else ""
        raise InvalidDataError(
            f"{header} was written by an earlier version of smartcpd, whose account of a run this "
            f"one does not read. CPModel.load still reads the model; for the rest repeat the run"
            f"{again}."
        )
    if description["run_sha256"] != _told(run)["run_sha256"]:
        raise InvalidDataError(
            f"{header} tells of a run in other words than were written: it is damaged or was "
            "edited. Fetch it again or repeat the run; CPModel.load still reads the model."
        )
    return run


def _told(run: dict[str, Any]) -> dict[str, Any]:
    """Return what the JSON says of the fit, with a digest: nothing else checks its many figures."""
    return {"run": run, "run_sha256": _digest(json.dumps(run, sort_keys=True).encode())}


def _lines(description: dict[str, Any]) -> str:
    """Write JSON with a key a line, so that thousands of labels do not take thousands of lines."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in description.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _paths(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    stem = os.fspath(path).removesuffix(".npz")
    return Path(stem + ".npz"), Path(stem + ".json")


def _factor_key(mode: int) -> str:
    return f"factor_{mode}"


def _exposure_key(mode: int) -> str:
    return f"exposure_{mode}"


def _exposure_arrays(exposure: Exposure | None) -> dict[str, np.ndarray]:
    vectors = () if exposure is None else exposure.vectors
    return {_exposure_key(n): v for n, v in enumerate(vectors) if v is not None}


def _restored_exposure(description: dict[str, Any], arrays: Any) -> Exposure | None:
    """Return the exposure of a model, None for one that was saved before there was any."""
    saved = description.get("exposure")
    if saved is None:
        return None
    keys = [_exposure_key(n) for n in range(len(description["shape"]))]
    vectors = tuple(arrays[key] if key in arrays.files else None for key in keys)
    return Exposure(vectors if saved["is_product"] else (), per=str(saved["per"]))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _describe(model: CPModel, content: bytes) -> dict[str, Any]:
    loss = model.loss_function
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "loss": None if loss is None else loss.spelled_out,
        "custom_loss": loss is not None and not _is_restorable(loss),
        "shape": model.shape,
        "rank": model.rank,
        "modes": None if model.modes is None else [_described(mode) for mode in model.modes],
        "exposure": None
        if model.exposure is None
        else {"per": model.exposure.per, "is_product": model.exposure.is_product},
        "smartcpd_version": __version__,
        "sha256": _digest(content),
    }


def _described(mode: Mode) -> dict[str, Any]:
    labels = mode.labels.astype(str) if mode.labels.dtype.kind == "M" else mode.labels
    return {
        "name": mode.name,
        "kind": mode.kind,
        "dtype": mode.labels.dtype.str,
        "labels": labels.tolist(),
    }


def _restored_modes(description: dict[str, Any], header: Path) -> list[Mode] | None:
    saved = description.get("modes")
    if saved is None:
        return None
    try:
        return [
            Mode(mode["name"], np.array(mode["labels"], dtype=mode["dtype"]), mode["kind"])
            for mode in saved
        ]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidDataError(
            f"{header} has labels that cannot be read: {error}. Save the model again."
        ) from error


def _is_restorable(loss: Loss) -> bool:
    """Whether the name of a loss brings it back: a custom one may be called 'poisson' too."""
    try:
        return losses.get(loss.spelled_out) == loss
    except InvalidParameterError:
        return False


def _read_header(path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(path.read_bytes())
        ours = header["format"] == FORMAT
    except (ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise InvalidDataError(
            f"{path} does not describe a smartcpd model. Was it written by CPModel.save?"
        )
    if header.get("format_version") != FORMAT_VERSION:
        raise InvalidDataError(
            f"{path} has format version {header.get('format_version')!r}; this smartcpd reads "
            f"version {FORMAT_VERSION}. It was written by smartcpd "
            f"{header.get('smartcpd_version')}: use that version or a later one."
        )
    missing = {"loss", "custom_loss", "shape", "sha256"} - header.keys()
    if missing:
        raise InvalidDataError(f"{path} lacks {', '.join(sorted(missing))}; save the model again.")
    return header


def _restored_loss(
    description: dict[str, Any], header: Path, loss: Loss | str | None
) -> Loss | None:
    if loss is not None:
        return losses.get(loss)
    saved = description["loss"]
    if saved is None:
        return None
    if not isinstance(saved, str):
        raise InvalidDataError(f"{header} names the loss {saved!r}; save the model again.")
    advice = "Pass it: CPModel.load(path, loss=my_loss)."
    if description["custom_loss"]:
        raise InvalidParameterError(
            f"{header} was fitted under the custom loss {saved!r}, whose functions are not saved. "
            f"{advice}"
        )
    try:
        return losses.get(saved)
    except InvalidParameterError as error:
        raise InvalidParameterError(
            f"{header} names the loss {saved!r}, which this smartcpd does not have: {error} "
            f"{advice}"
        ) from error
