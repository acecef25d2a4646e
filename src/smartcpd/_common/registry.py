"""Names for pieces: ``"beta(0.5)"`` becomes ``Beta(0.5)``.

Adding a piece means adding a file to its folder. The registry imports every module of that folder,
so the estimator, the error messages, the docs' tables and the contract tests follow by themselves.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import math
import pkgutil
from functools import cached_property
from typing import Any, Generic, TypeVar

from smartcpd.errors import InvalidParameterError

T = TypeVar("T")
AUTO = "auto"
"""A parameter that is not given but found."""


class Registry(Generic[T]):
    """A registry finds the pieces of one kind by name.

    Parameters
    ----------
    kind : str
        What an error message calls such a piece, for example ``"loss"``.
    base : type
        The class that every piece of this kind derives from.
    package : str
        The package whose modules hold the pieces, one a module.

    Examples
    --------
    >>> from smartcpd import mirrors
    >>> list(mirrors.registry.classes)
    ['burg', 'entropy', 'power', 'quadratic']
    """

    def __init__(self, kind: str, base: type[T], package: str) -> None:
        self.kind = kind
        self.base = base
        self.package = package

    @cached_property
    def classes(self) -> dict[str, type[T]]:
        """Every named class of the package, in alphabetical order of names."""
        found: dict[str, type[T]] = {}
        for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__):
            members = vars(importlib.import_module(f"{self.package}.{module.name}")).values()
            for member in members:
                if inspect.isclass(member) and issubclass(member, self.base):
                    name = vars(member).get("name")
                    if isinstance(name, str):
                        found[name] = member
        return dict(sorted(found.items()))

    def names(self) -> list[str]:
        """List the names of all pieces of this kind.

        Returns
        -------
        list of str
            In alphabetical order.

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> mirrors.names()
        ['burg', 'entropy', 'power', 'quadratic']
        """
        return list(self.classes)

    def get(self, piece: str | T) -> T:
        """Return the piece that a name stands for.

        Parameters
        ----------
        piece : str or a piece of this kind
            A name, a name with parameters such as ``"box(0, 1)"``, or a piece, which is returned
            as it is.

        Returns
        -------
        The piece.

        Raises
        ------
        InvalidParameterError
            If there is no piece of this name, or it has no such parameters.

        Examples
        --------
        >>> from smartcpd import constraints
        >>> constraints.get("box(0, 1)")
        Box(lo=0, hi=1)
        """
        if isinstance(piece, self.base):
            return piece
        if not isinstance(piece, str):
            raise InvalidParameterError(
                f"{self.kind} must be a name or a {self.base.__name__}; got {piece!r} of type "
                f"{type(piece).__name__}. Names: {', '.join(self.names())}."
            )
        name, args, kwargs = self._parse(piece)
        if name not in self.classes:
            close = difflib.get_close_matches(name, self.names(), n=1)
            hint = f"Did you mean {close[0]!r}? " if close else ""
            raise InvalidParameterError(
                f"Unknown {self.kind} {name!r}. {hint}Names: {', '.join(self.names())}."
            )
        cls = self.classes[name]
        try:
            return cls(*args, **kwargs)
        except TypeError:
            raise InvalidParameterError(
                f"{self.kind} {piece!r} does not fit its form {name}{inspect.signature(cls)}."
            ) from None

    def _parse(self, text: str) -> tuple[str, list[Any], dict[str, Any]]:
        name, bracket, rest = text.strip().partition("(")
        if not bracket:
            return name, [], {}
        try:
            call = ast.parse(f"_({rest}", mode="eval").body
            if not isinstance(call, ast.Call):
                raise ValueError
            args = [_literal(a) for a in call.args]
            kwargs = {str(k.arg): _literal(k.value) for k in call.keywords}
        except (SyntaxError, ValueError):
            raise InvalidParameterError(
                f"Cannot read {self.kind} {text!r}; write it as name(number, ...), "
                f"for example {name.strip()}(0.5)."
            ) from None
        return name.strip(), args, kwargs

    def __getattr__(self, attribute: str) -> type[T]:
        """Find classes by their Python name, so that a package can re-export them all."""
        if not attribute.startswith("_"):
            for cls in self.classes.values():
                if cls.__name__ == attribute:
                    return cls
        raise AttributeError(attribute)


def _literal(node: ast.expr) -> Any:
    """A number or another literal; also inf, which Python has no literal for, and auto."""
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    if isinstance(node, ast.Name) and node.id == AUTO:
        return AUTO
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_literal(node.operand)
    return ast.literal_eval(node)
