"""The settings of a run, and how to make it again."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from smartcpd.report.text import escape

PACKAGES = ("smartcpd", "numpy", "numba", "scipy")


def settings_table(settings: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(_shown(value))}</dd></div>"
        for name, value in settings.items()
    )
    return f'<dl class="facts">{rows}</dl>'


def versions() -> dict[str, str]:
    """What the page was made with."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "from source"
    found["system"] = f"{sys.platform}, {platform.machine()}"
    return found


def python_code(settings: Mapping[str, Any], rank: int, loss: str | None) -> str:
    """The call that fits this model, of the settings that a fit has."""
    import inspect

    from smartcpd.fitting import fit

    known = inspect.signature(fit).parameters
    arguments = {"rank": rank, "loss": loss or "gaussian"}
    for name, value in settings.items():
        usual = known[name].default if name in known else None
        if name in known and name not in ("X", "callback", "progress") and value != usual:
            arguments[name] = value
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return (
        f"from smartcpd import SmartCPD\n\nestimator = SmartCPD({given}).fit(X)\nestimator.model_"
    )


def code_block(title: str, code: str) -> str:
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
