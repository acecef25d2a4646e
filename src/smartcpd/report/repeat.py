"""The settings of a run, and how to make it again."""

from __future__ import annotations

import inspect
import platform
import sys
from collections.abc import Callable, Mapping
from typing import Any

from smartcpd._common.version import installed
from smartcpd._data.exposure import Exposure
from smartcpd._data.tables import from_table
from smartcpd._fitting.fit import fit
from smartcpd.report.text import escape

GIVEN = ("mask", "weights", "exposure")
"""What a fit takes beside the data."""
PACKAGES = ("smartcpd", "numpy", "numba", "scipy")


def settings_table(settings: Mapping[str, Any]) -> str:
    """Write the settings as a table."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(_shown(value))}</dd></div>"
        for name, value in settings.items()
    )
    return f'<dl class="facts">{rows}</dl>'


def versions() -> dict[str, str]:
    """Return the versions that the page was made with."""
    system = f"{sys.platform}, {platform.machine()}"
    return installed(PACKAGES, "from source") | {"system": system}


def python_code(
    settings: Mapping[str, Any], rank: int, loss: str | None, exposure: Exposure | None = None
) -> str:
    """Return code that fits this model, from the file on where it is known."""
    arguments: dict[str, Any] = {"rank": rank, "loss": loss or "gaussian"}
    arguments |= _differing(settings, fit, ("X", "rank", "loss", "callback", "progress", *GIVEN))
    lines = ["import smartcpd", ""]
    more = ""
    if _is_plain(settings.get("file")) and settings.get("file"):
        if settings["file"] == "-":
            lines.append("# '-' is the standard input, where the table must stand again.")
        lines.append(f"X = {_reading(settings)}")
        if settings.get("exposure"):
            lines.append(f"E = {_column(settings, settings['exposure'], 'sum')}")
            more = ", exposure=E.tensor"
        elif settings.get("per") and exposure is not None and exposure.is_product:
            mode = next(n for n, vector in enumerate(exposure.vectors) if vector is not None)
            lines.append(f"E = {_column(settings, settings['per'], 'mean')}")
            lines.append(f"per = dict(zip(E.tensor.indices[{mode}], E.tensor.values))")
            more = f", exposure={{{mode}: [per[row] for row in sorted(per)]}}"
    lines.append(f"estimator = smartcpd.SmartCPD({_given(arguments)}).fit(X{more})")
    return "\n".join(lines)


def _reading(settings: Mapping[str, Any]) -> str:
    """The call that reads the data."""
    file = settings["file"]
    if "modes" not in settings:
        limit = settings.get("max_memory")
        return f"smartcpd.read({_given({'': file} | ({'max_memory': limit} if limit else {}))})"
    more = _differing(settings, from_table, ("data", "modes", "out", "max_memory"))
    return f"smartcpd.from_table({_given({'': file, 'modes': settings['modes']} | more)})"


def _column(settings: Mapping[str, Any], column: str, agg: str) -> str:
    """The call that reads a column into the cells of the data."""
    own = {"value": column, "agg": agg, "absent": "missing"}
    return _reading({**settings, **own})


def _differing(
    settings: Mapping[str, Any], call: Callable[..., Any], others: tuple[str, ...]
) -> dict[str, Any]:
    """The parameters of a call that are not the default, and that code can spell out."""
    return {
        name: settings[name]
        for name, parameter in inspect.signature(call).parameters.items()
        if name not in others
        and name in settings
        and _is_plain(settings[name])
        and settings[name] != parameter.default
    }


def _given(arguments: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value!r}" if name else repr(value) for name, value in arguments.items()
    )


def _is_plain(value: Any) -> bool:
    """Whether code can spell a value out: numbers, text, and lists and dicts of them."""
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def code_block(title: str, code: str) -> str:
    """Write code with a title and a button that copies it."""
    return (
        f'<figure class="code"><figcaption>{escape(title)}'
        '<button type="button" class="copy" hidden>Copy</button></figcaption>'
        f'<pre tabindex="0"><code>{escape(code)}</code></pre></figure>'
    )


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {_shown(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_shown(v) for v in value)
    return str(value)
