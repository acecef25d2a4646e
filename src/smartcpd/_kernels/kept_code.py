"""Machine code on disk, shared by all environments of a user.

Code is found by what it was made from: the module of a function and all that this imports, by their
content. The same sources in another environment, or an older version whose kernels were the same,
therefore find it; an edit of one loss compiles that loss again and nothing else. Numba alone looks
only at the file of the compiled function and would run a stale loss after an edit elsewhere.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import platformdirs
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys

from smartcpd._kernels.turns import Turn
from smartcpd._kernels.uninterrupted import uninterrupted

SOURCES = ("_kernels", "_objectives", "constraints", "losses", "mirrors", "steps")
"""Packages that hold every function that is compiled, and every constant that those use."""
ALONE = "smartcpd-"
"""How the name begins of a folder that belongs to one process."""
UNUSED_DAYS = 90
"""Code that no process has asked for in so many days is removed."""

_ROOT = Path(__file__).resolve().parent.parent
_IMPORT = re.compile(
    r"^[ \t]*from[ \t]+smartcpd\.([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE
)


class KeptCode(FunctionCache):
    """Numba's on-disk cache, in a place and under a key of ours."""

    def __init__(self, function: Callable[..., Any], announce: Callable[[], None]) -> None:
        self._impl_class = _Impl
        super().__init__(function)
        self._announce = announce
        self.missed = False
        self.turn = Turn(Path(self.cache_path) / f"{self._impl.filename_base}.lock")

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code, if it is on disk; else wait for a process that is compiling it now."""
        found = self._readable(sig, target_context)
        if found is None:
            self.missed = True
            self._announce()
            _remove_unused()
            self.turn.wait()
            found = self._readable(sig, target_context)
        return found

    def _readable(self, sig: Any, target_context: Any) -> Any:
        """What is on disk; nothing where a file was cut short, which is then forgotten.

        Numba would first teach its compiler all that it knows of Python and NumPy, which takes a
        quarter of a second. Code that is compiled needs none of it but memory for arrays.
        """
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors(), uninterrupted():
                return self._load_overload(sig, target_context)
        except Exception:
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code; where the disk is full, the process goes on without."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


class _Impl(CompileResultCacheImpl):
    """Numba's way to write compiled functions, with a place and a name of ours."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = self
        self._py_file = function.__code__.co_filename
        name = f"{function.__module__.removeprefix('smartcpd.')}.{function.__qualname__}"
        self._filename_base = f"{name}-{key_of(function)[:20]}"

    def get_cache_path(self) -> str:
        return str(folder())

    def ensure_cache_path(self) -> None:
        folder().mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return self._filename_base


def key_of(function: Callable[..., Any]) -> str:
    """Return a hash of the sources that a function is compiled from."""
    needed: set[str] = set()
    for module in _modules_of(function):
        needed |= _imported_by(module)
    digest = hashlib.sha256()
    for module in sorted(needed):
        digest.update(f"{module} {_hash(module)}\n".encode())
    return digest.hexdigest()


def is_from_sources(function: Callable[..., Any]) -> bool:
    """Whether all that a function is compiled from is part of the key."""
    return all(module is not None for module in _modules_of(function))


def is_kept(function: Callable[..., Any], name: str) -> bool:
    """Whether code is on disk whose name begins with ``name``, compiled from the sources of a
    function, or of the factory that makes it, as they are.
    """
    module = function.__module__.removeprefix("smartcpd.")
    pattern = f"{module}.{name}.*-{key_of(function)[:20]}.*nbi"
    return any(folder().glob(pattern))


def _modules_of(function: Any) -> Iterator[str | None]:
    """Return the modules of a function and of those it calls by its closure; None for a module
    that is not among the sources.
    """
    function = getattr(function, "py_func", function)
    if hasattr(function, "__code__"):
        name = function.__module__.removeprefix("smartcpd.")
        yield name if _path(name) else None
        for cell in function.__closure__ or ():
            yield from _modules_of(cell.cell_contents)


@cache
def _path(module: str) -> Path | None:
    """Return the file of a module among the sources."""
    if module.partition(".")[0] not in SOURCES:
        return None
    path = _ROOT.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


@cache
def _text(module: str) -> str:
    path = _path(module)
    return path.read_text(encoding="utf-8") if path else ""


@cache
def _hash(module: str) -> str:
    return hashlib.sha256(_text(module).encode()).hexdigest()


@cache
def _imported_by(module: str) -> frozenset[str]:
    """Return a module and all it imports from the sources, directly or not."""
    found, new = {module}, {module}
    while new:
        new = set().union(*map(_imports, new)) - found
        found |= new
    return frozenset(found)


@cache
def _imports(module: str) -> frozenset[str]:
    names = (
        f"{package}.{name}" if _path(f"{package}.{name}") else package
        for package, listed in _IMPORT.findall(_text(module))
        for name in re.findall(r"\w+", listed.partition("#")[0])
    )
    return frozenset(name for name in names if _path(name))


@cache
def folder() -> Path:
    """Return the folder of machine code that this version of Python and Numba can load.

    It lies in Numba's folder if the user named one (NUMBA_CACHE_DIR), else among the user's caches.
    Where neither can be written, it is a folder of this process alone.
    """
    top = Path(config.CACHE_DIR or platformdirs.user_cache_dir("smartcpd", appauthor=False))
    versions = (sys.implementation.cache_tag, f"numba-{numba.__version__}", platform.machine())
    path = top / "compiled" / "-".join(map(str, versions))
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        own = Path(tempfile.mkdtemp(prefix=ALONE))
        atexit.register(shutil.rmtree, own, ignore_errors=True)
        return own
    return path


def keeps_for_others() -> bool:
    """Whether other processes find the code that this one compiles."""
    return not folder().name.startswith(ALONE)


@cache
def _remove_unused() -> None:
    """Remove code that was not used for long, once a process and only in one that adds some.

    Where the file system does not note when a file was read, what counts is when it was written.
    """
    oldest = time.time() - UNUSED_DAYS * 86400
    for path in folder().iterdir():
        with contextlib.suppress(OSError):
            times = path.stat()
            if max(times.st_atime, times.st_mtime) < oldest:
                path.unlink()
