"""The progress bar: loss, epochs per second, what a limit leaves. Quiet when nobody is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from smartcpd._methods.base import Epoch
from smartcpd._problem.stopping import Stopping

SECONDS_A_LINE = 5.0
SECONDS_A_LOOK = 0.5
"""How often the line in a notebook changes."""


class Progress:
    """Shows a progress bar as a context manager; ``update`` does nothing when it is disabled.

    Parameters
    ----------
    enabled : bool or "auto"
        "auto" shows the bar when standard error is a terminal, and a line that changes in a
        notebook. True also writes to a file or pipe, a line every few seconds instead of a bar.
    """

    def __init__(self, enabled: bool | str, stopping: Stopping) -> None:
        self._stopping = stopping
        self._line = NotebookLine.here() if enabled else None
        self._show = sys.stderr.isatty() if enabled == "auto" else bool(enabled)
        self._last_line = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Callable[[Epoch], None]:
        if self._show and sys.stderr.isatty() and self._line is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("[bold]smartcpd"),
                BarColumn(),
                TextColumn("{task.fields[text]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            # When a fit will have converged is not known: without a limit the bar only moves.
            self._task = self._bar.add_task(
                "fit", total=self._stopping.max_time, text="finding a start ..."
            )
        return self.update

    def update(self, report: Epoch) -> None:
        record, limit = report.record, self._stopping.max_time
        if self._line is not None:
            self._line.say(record.time, f"epoch {record.epoch}, loss {record.loss:.6g}")
            return
        if self._bar is None:
            if self._show and record.time - self._last_line >= SECONDS_A_LINE:
                self._last_line = record.time
                text = f"{record.time:.0f} s, epoch {record.epoch}, loss {record.loss:.6g}"
                print(f"smartcpd: {text}", file=sys.stderr, flush=True)
            return
        text = f"epoch {record.epoch}  loss {record.loss:.6g}"
        if record.time > 0:
            text += f"  {record.epoch / record.time:.3g} epochs/s"
        if limit is not None:
            text += f"  at most {max(limit - record.time, 0.0):.0f} s left"
        done = record.time if limit is None else min(record.time, limit)
        self._bar.update(self._task, completed=done, text=text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._line is not None:
            self._line.clear()


class NotebookLine:
    """A line under a cell of a notebook that says how far a fit is, and goes when it is done."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None
        self._last = 0.0

    @classmethod
    def here(cls) -> NotebookLine | None:
        """Return a line if this process is the kernel of a notebook."""
        ipython = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
            return None
        from IPython.display import display

        return cls(display)

    def say(self, seconds: float, text: str) -> None:
        if seconds - self._last < SECONDS_A_LOOK:
            return
        self._last = seconds
        content = {"text/plain": f"smartcpd: {seconds:.0f} s, {text}"}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
