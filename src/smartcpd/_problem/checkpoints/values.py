"""The state of a running fit as plain data: numbers, text, lists, dicts and copies of arrays.

Objects that change while a fit runs say which of their attributes are worth keeping, in ``kept``.
Values that such attributes hold are of classes named here; nothing else can come out of a file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

TAG = "is"
_WAYS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {}

ClassT = TypeVar("ClassT", bound=type)


def kept_value(cls: ClassT) -> ClassT:
    """Mark a dataclass, NamedTuple or list whose instances may be part of a state."""
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
        _WAYS[cls.__name__] = (
            cls,
            lambda value: [getattr(value, name) for name in names],
            lambda parts: _rebuilt(cls, names, parts),
        )
    elif hasattr(cls, "_make"):
        _WAYS[cls.__name__] = (cls, list, cls._make)
    else:
        _WAYS[cls.__name__] = (cls, list, cls)
    return cls


def freeze(value: Any) -> Any:
    """Return plain data that later changes of the value do not reach."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return value.copy(order="K") if value.flags.forc else np.array(value, order="C")
    if isinstance(value, np.generic):
        return {TAG: "scalar", "of": np.array(value)}
    if isinstance(value, np.random.Generator):
        return {TAG: "generator", "of": value.bit_generator.state, "spawned": _spawned(value)}
    if hasattr(type(value), "kept"):
        names = [name for name in value.kept if hasattr(value, name)]
        return {TAG: "state", "of": {name: freeze(getattr(value, name)) for name in names}}
    found = _WAYS.get(type(value).__name__)
    if found is not None and type(value) is found[0]:
        return {TAG: type(value).__name__, "of": freeze(found[1](value))}
    if type(value) is tuple:
        return {TAG: "tuple", "of": [freeze(part) for part in value]}
    if type(value) is list:
        return [freeze(part) for part in value]
    if type(value) is dict:
        return {TAG: "dict", "of": {key: freeze(part) for key, part in value.items()}}
    raise TypeError(f"{type(value).__name__} cannot be part of a checkpoint")


def thaw(plain: Any) -> Any:
    """Return the value that plain data stands for."""
    if isinstance(plain, list):
        return [thaw(part) for part in plain]
    if isinstance(plain, np.ndarray):
        return plain.copy(order="K")
    if not isinstance(plain, dict):
        return plain
    kind, inside = plain[TAG], plain["of"]
    if kind == "scalar":
        return inside[()]
    if kind == "tuple":
        return tuple(thaw(part) for part in inside)
    if kind == "dict":
        return {key: thaw(part) for key, part in inside.items()}
    return _WAYS[kind][2](thaw(inside))


def restore(target: Any, plain: Any) -> None:
    """Give an object the state that `freeze` saw, in place."""
    if isinstance(target, np.random.Generator):
        target.bit_generator.state = plain["of"]
        seeds: Any = target.bit_generator.seed_seq
        if _spawned(target) < plain["spawned"]:
            seeds.spawn(plain["spawned"] - _spawned(target))
        return
    values = {}
    for name, part in plain["of"].items():
        kind = part.get(TAG) if isinstance(part, dict) else None
        if kind in ("generator", "state"):
            restore(getattr(target, name), part)
        else:
            values[name] = thaw(part)
    if hasattr(target, "put_back"):
        target.put_back(values)
    else:
        for name, value in values.items():
            setattr(target, name, value)


def _rebuilt(cls: type, names: list[str], parts: list[Any]) -> Any:
    """Rebuild an object without its constructor, which may compute what is already here."""
    value: Any = object.__new__(cls)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(value, name, part)
    return value


def _spawned(rng: np.random.Generator) -> int:
    """Return how many generators were made from this one, which its own state does not tell."""
    return getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
