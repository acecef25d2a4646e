"""What scikit-learn's tools ask of an estimator, answered without importing scikit-learn.

That import takes longer than a small fit. So nothing here inherits from its classes: its tools know
an estimator by its methods, and what must be an object of scikit-learn's own is made when one of
them asks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from smartcpd._common.extras import if_loaded, required
from smartcpd._data.labelled import LabelledTensor, is_frame
from smartcpd._estimator.display import called
from smartcpd.errors import IncompatibleError, InvalidParameterError, SmartCPDError

OUTPUTS = ("default", "pandas", "polars")
ROUTED = ("fit", "partial_fit", "score", "transform")
"""Methods that take more than data, which scikit-learn can hand on to them."""


class NotFittedError(SmartCPDError, ValueError, AttributeError):
    """An estimator is used before it is fitted, in a program that has not loaded scikit-learn."""


class Estimator:
    """Parameters, the container of results and metadata: what all estimators have in common."""

    model_: Any
    _output: str
    _requests: dict[str, dict[str, bool | str | None]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            Whether parameters of parameters are returned, too, as ``a__b``.

        Returns
        -------
        dict
            What the estimator was made with.

        Examples
        --------
        >>> from smartcpd import SmartCPD
        >>> SmartCPD(3, "gamma").get_params()["loss"]
        'gamma'
        """
        own = {name: getattr(self, name) for name in defaults(type(self))}
        nesting = [(name, value) for name, value in own.items() if deep and _nests(value)]
        inner = {f"{name}__{k}": v for name, part in nesting for k, v in part.get_params().items()}
        return own | inner

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name, before the next fit.

        Parameters
        ----------
        **params
            New values; ``a__b`` is the parameter b of parameter a.

        Returns
        -------
        SmartCPD
            This estimator.

        Examples
        --------
        >>> from smartcpd import SmartCPD
        >>> SmartCPD(3).set_params(rank=4, loss="gamma")
        SmartCPD(loss='gamma', rank=4)
        """
        known = defaults(type(self))
        for name in sorted(params, key=lambda name: "__" in name):
            own, _, inner = name.partition("__")
            if own not in known or (inner and not _nests(getattr(self, own))):
                raise InvalidParameterError(
                    f"Invalid parameter {name!r} for {type(self).__name__}, which has "
                    f"{', '.join(known)}."
                )
            if inner:
                getattr(self, own).set_params(**{inner: params[name]})
            else:
                setattr(self, own, params[name])
        return self

    def __repr__(self) -> str:
        only_changed = _setting("print_changed_only", True)
        values = ((name, repr(getattr(self, name)), d) for name, d in defaults(type(self)).items())
        shown = {name: v for name, v, d in values if v != repr(d) or not only_changed}
        return called(type(self).__name__, shown)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns.

        Parameters
        ----------
        transform : "default", "pandas", "polars" or None
            Arrays, or tables of these packages with a column for each component. None leaves it as
            it is.

        Returns
        -------
        SmartCPD
            This estimator.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X = datasets.count((4, 5, 6), 2, random_state=0).data
        >>> cpd = SmartCPD(2, "poisson", random_state=0).set_output(transform="pandas")
        >>> list(cpd.fit_transform(X).columns)
        ['component 1', 'component 2']
        """
        if transform is not None:
            self._output = _checked_output(transform)
        return self

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn's tools hand on to the methods beside the data.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
            The names that each method takes, and what ``set_fit_request`` and its like asked for.

        Examples
        --------
        >>> from smartcpd import SmartCPD
        >>> SmartCPD(2).get_metadata_routing().score.requests["weights"] is None
        True
        """
        return self._routing(vars(self).get("_requests", {}))

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata `fit` gets from tools of scikit-learn.

        Parameters
        ----------
        **requests
            For each name that `fit` takes beside the data: True to get it, False to
            ignore it, None to refuse it, or another name by which the tool is given it.

        Returns
        -------
        SmartCPD
            This estimator.

        Examples
        --------
        >>> import sklearn
        >>> from smartcpd import SmartCPD
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     cpd = SmartCPD(2).set_fit_request(sample_weight=True)
        >>> cpd.get_metadata_routing().fit.requests["sample_weight"]
        True
        """
        return self._with_requests("fit", requests)

    def set_partial_fit_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata `partial_fit` gets from tools of scikit-learn.

        Parameters
        ----------
        **requests
            For each name that `partial_fit` takes beside the data: True to get it, False to
            ignore it, None to refuse it, or another name by which the tool is given it.

        Returns
        -------
        SmartCPD
            This estimator.

        Examples
        --------
        >>> import sklearn
        >>> from smartcpd import SmartCPD
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     cpd = SmartCPD(2).set_partial_fit_request(weights=True)
        >>> cpd.get_metadata_routing().partial_fit.requests["weights"]
        True
        """
        return self._with_requests("partial_fit", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata `score` gets from tools of scikit-learn.

        Parameters
        ----------
        **requests
            For each name that `score` takes beside the data: True to get it, False to
            ignore it, None to refuse it, or another name by which the tool is given it.

        Returns
        -------
        SmartCPD
            This estimator.

        Examples
        --------
        >>> import sklearn
        >>> from smartcpd import SmartCPD
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     cpd = SmartCPD(2).set_score_request(weights=True)
        >>> cpd.get_metadata_routing().score.requests["weights"]
        True
        """
        return self._with_requests("score", requests)

    def set_transform_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata `transform` gets from tools of scikit-learn.

        Parameters
        ----------
        **requests
            For each name that `transform` takes beside the data: True to get it, False to
            ignore it, None to refuse it, or another name by which the tool is given it.

        Returns
        -------
        SmartCPD
            This estimator.

        Examples
        --------
        >>> import sklearn
        >>> from smartcpd import SmartCPD
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     cpd = SmartCPD(2).set_transform_request(mode=True)
        >>> cpd.get_metadata_routing().transform.requests["mode"]
        True
        """
        return self._with_requests("transform", requests)

    def _with_requests(self, method: str, requests: Mapping[str, bool | str | None]) -> Self:
        sklearn = required("sklearn", "Metadata routing")
        if not sklearn.get_config()["enable_metadata_routing"]:
            raise IncompatibleError(
                f"set_{method}_request needs metadata routing, which is off. Turn it on with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        known = _metadata_of(getattr(type(self), method))
        for name in requests:
            if name not in known:
                raise InvalidParameterError(
                    f"{method} takes no metadata {name!r}; it takes {', '.join(known)}."
                )
        before = vars(self).get("_requests", {})
        after = before | {method: before.get(method, {}) | dict(requests)}
        self._routing(after)  # refuses what is no request
        self._requests = after
        return self

    def _routing(self, requests: Mapping[str, Mapping[str, bool | str | None]]) -> Any:
        required("sklearn", "Metadata routing")
        from sklearn.utils.metadata_routing import MetadataRequest

        routing = MetadataRequest(owner=type(self).__name__)
        for method in ROUTED:
            names = dict.fromkeys(_metadata_of(getattr(type(self), method)))
            for name, alias in (names | dict(requests.get(method, {}))).items():
                getattr(routing, method).add_request(param=name, alias=alias)
        return routing

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(sparse=True, allow_nan=True),
        )

    def __sklearn_clone__(self) -> Self:
        from sklearn.base import clone

        values = self.get_params(deep=False).items()
        copy = type(self)(**{name: clone(value, safe=False) for name, value in values})
        chosen = ("_output", "_requests")
        vars(copy).update({name: vars(self)[name] for name in chosen if name in vars(self)})
        return copy

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            kind = if_loaded("sklearn.exceptions", "NotFittedError", NotFittedError)
            raise kind(f"This {type(self).__name__} is not fitted yet. Call fit(X) first.")

    def _in_container(
        self, rows: np.ndarray | LabelledTensor, columns: list[str], X: Any, mode: int
    ) -> Any:
        """Return rows of a mode of X in the container chosen for it, or for all estimators."""
        chosen = vars(self).get("_output") or _setting("transform_output", "default")
        if _checked_output(chosen) == "default":
            return np.asarray(rows) if is_frame(X) else rows
        package = required(chosen, f"set_output(transform={chosen!r})")
        if chosen == "polars":
            return package.DataFrame(np.asarray(rows), schema=columns, orient="row")
        labels = rows.modes[0].labels if isinstance(rows, LabelledTensor) else None
        index = X.axes[mode] if isinstance(X, package.DataFrame) else labels
        return package.DataFrame(np.asarray(rows), index=index, columns=columns)


def defaults(cls: type) -> dict[str, Any]:
    """Return the parameters of a class in alphabetical order, with their defaults."""
    found = inspect.signature(cls).parameters.values()
    named = (p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    return {p.name: p.default for p in sorted(named, key=lambda p: p.name)}


def _metadata_of(method: Callable[..., Any]) -> tuple[str, ...]:
    """Return what a method takes beside the estimator, the data and what data is judged by."""
    found = list(inspect.signature(method).parameters.values())[2:]
    return tuple(p.name for p in found if p.name != "y" and p.kind != p.VAR_KEYWORD)


def _nests(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _setting(name: str, default: Any) -> Any:
    """Return a setting of scikit-learn, in a program that has loaded it."""
    return if_loaded("sklearn", "get_config", dict)().get(name, default)


def _checked_output(name: str) -> str:
    if name not in OUTPUTS:
        known = ", ".join(map(repr, OUTPUTS))
        raise InvalidParameterError(f"The output of transform is one of {known}; got {name!r}.")
    return name
