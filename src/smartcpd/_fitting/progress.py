"""The progress bar: loss, epochs per second, time left. Quiet when nobody is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from smartcpd._methods.base import Epoch
from smartcpd._problem.stopping import Stopping

SECONDS_A_LINE = 5.0


class Progress:
    """Shows a progress bar as a context manager; ``update`` does nothing when it is disabled.

    Parameters
    ----------
    enabled : bool or "auto"
        "auto" shows the bar when standard error is a terminal. True also writes to a file or pipe,
        a line every few seconds instead of a bar.
    """

    def __init__(self, enabled: bool | str, stopping: Stopping) -> None:
        self._stopping = stopping
        self._show = sys.stderr.isatty() if enabled == "auto" else bool(enabled)
        self._last_line = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Callable[[Epoch], None]:
        if self._show and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("[bold]smartcpd"),
                BarColumn(),
                TextColumn("epoch {task.fields[epoch]}  loss {task.fields[loss]:.6g}"),
                TextColumn("{task.fields[rate]:.3g} epochs/s  at most"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("fit", total=1.0, epoch=0, loss=float("nan"), rate=0.0)
        return self.update

    def update(self, report: Epoch) -> None:
        record, stopping = report.record, self._stopping
        if self._bar is None:
            if self._show and record.time - self._last_line >= SECONDS_A_LINE:
                self._last_line = record.time
                text = f"{record.time:.0f} s, epoch {record.epoch}, loss {record.loss:.6g}"
                print(f"smartcpd: {text}", file=sys.stderr, flush=True)
            return
        done = record.epoch / stopping.max_epochs
        if stopping.max_time is not None:
            done = max(done, record.time / stopping.max_time)
        rate = record.epoch / record.time if record.time > 0 else 0.0
        self._bar.update(
            self._task, completed=min(done, 1.0), epoch=record.epoch, loss=record.loss, rate=rate
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
