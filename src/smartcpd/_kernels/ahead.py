"""Compilation ahead of need, by a process of its own.

A process compiles one function at a time, however many cores there are. What a fit needs later is
therefore compiled by another process, while this one compiles what it needs first. They meet on
disk, where each finds what the other has left, and take turns where they want the same.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from smartcpd._kernels.kept_code import is_kept, keeps_for_others

_SOURCES = Path(__file__).resolve().parents[2]


@cache
def compile_ahead(*kernels: str) -> None:
    """Have kernels compiled in the given order, unless they are on disk already.

    A kernel is named by its module, its function and perhaps a precision or an order:
    ``"core_sweeps.core_sweeps:float64"``, ``"mixture_passes.mixture_passes:3"``. Nothing is done
    where no second core or no interpreter is there to do it.
    """
    missing = [kernel for kernel in kernels if not _is_kept(kernel)]
    if not missing or not keeps_for_others() or (os.cpu_count() or 1) < 2:
        return
    if not Path(sys.executable or "").name.startswith("python"):  # a program that contains Python
        return
    paths = [str(_SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
    with contextlib.suppress(OSError):
        helper = subprocess.Popen(
            [sys.executable, "-m", __name__, *missing],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(paths)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=helper.wait, daemon=True).start()


def _is_kept(kernel: str) -> bool:
    module, name, variant = _parts(kernel)
    function = getattr(module, name, None) or getattr(module, f"make_{name}")
    return is_kept(function, f"{name}.{variant}" if variant else name)


def _parts(kernel: str) -> tuple[ModuleType, str, str]:
    """Return the module of a kernel, its name, and its precision or order."""
    name, _, variant = kernel.partition(":")
    module, _, function = name.partition(".")
    return import_module(f"smartcpd._kernels.{module}"), function, variant


def main(kernels: list[str]) -> None:
    """Compile kernels, each as its module does when it is asked for it."""
    for kernel in kernels:
        module, name, variant = _parts(kernel)
        compiled = getattr(module, f"compiled_{name}")
        compiled(*([int(variant) if variant.isdigit() else variant] if variant else []))


if __name__ == "__main__":
    main(sys.argv[1:])
