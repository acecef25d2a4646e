"""The settings of a run, and how to make it again."""

from __future__ import annotations

import inspect
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from smartcpd._fitting.fit import fit
from smartcpd.report.text import escape

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
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "from source"
    found["system"] = f"{sys.platform}, {platform.machine()}"
    return found


def python_code(settings: Mapping[str, Any], rank: int, loss: str | None) -> str:
    """Return the call that fits this model: its rank, its loss and all that is not the default."""
    arguments: dict[str, Any] = {"rank": rank, "loss": loss or "gaussian"}
    for name, parameter in inspect.signature(fit).parameters.items():
        if name in ("X", "rank", "loss", "callback", "progress") or name not in settings:
            continue
        value = settings[name]
        if _is_plain(value) and value != parameter.default:
            arguments[name] = value
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"from smartcpd import SmartCPD\n\nestimator = SmartCPD({given}).fit(X)"


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
