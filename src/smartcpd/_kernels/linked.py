"""Functions that are only ever part of other compiled functions.

Numba makes machine code of every function that it compiles, also of those that none but other
compiled functions call. These take what they call from its intermediate code, so that such machine
code is never run; making it took 0.2 of the 3.2 s of a pass over fibers.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class LinkedCode(JITCodeLibrary):
    """Intermediate code, as optimised as Numba would make it, without machine code."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, by which Numba says that there is nothing that could be called."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Ignore the objects of Python that machine code would refer to."""


class LinkedCompiler(Compiler):
    """Numba's compiler, for functions that are linked into others."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
