"""One question to one shard, asked again until there is an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smartcpd.distributed.worker import Answer, Shard
from smartcpd.errors import ClusterError

if TYPE_CHECKING:
    from smartcpd.distributed.pool import Pool

ATTEMPTS = 20
"""How often a question is asked again before the cluster is given up."""

FETCHING = 5.0
"""Seconds in which an answer must arrive once it is there, twice as many with each attempt. If it
does not, its worker stands still, and another is asked."""

Arguments = Callable[[Shard], tuple[Any, ...]]


@dataclass
class Inquiry:
    """A question to one shard: its futures (two, if a worker was too slow), and its answer."""

    pool: Pool
    shard: Shard
    question: Callable[..., Any]
    arguments: Arguments
    state: Arguments | None
    """Makes the arguments for a worker that lacks what earlier questions left with another."""
    futures: list[Any] = field(default_factory=list)
    asked_of: str = ""
    """The worker that was asked last; the shard has another home since, if that worker is gone."""
    tries: int = 0
    answer: Answer | None = None

    def ask(self, make: Arguments, with_entries: bool = False) -> None:
        """Send the question to the worker that has the shard."""
        self.futures.append(self.pool.submit(self, make(self.shard), with_entries))
        self.asked_of = self.pool.homes[self.shard.number]

    def look(self, present: set[str]) -> None:
        """Take the answer if it is there; ask again what was lost with a worker."""
        found = self._found()
        if found is None and not self._lost and self.asked_of in present:
            return
        if found is not None and not (found.lacks_entries or found.lacks_state):
            self.answer = found
            self.drop()
            return
        self.tries += 1
        if self.tries > ATTEMPTS:
            raise ClusterError(
                f"Workers died {ATTEMPTS} times while they worked on {self.shard}. If it is too "
                "large for their memory, use more workers or smaller parts."
            )
        stands_still = found is None and any(f.status == "finished" for f in self.futures)
        self.drop()
        self.pool.settle()
        if stands_still and self.pool.homes[self.shard.number] == self.asked_of:
            self.pool.move(self.shard)
        wants_state = found is not None and found.lacks_state
        make = self.state if wants_state and self.state is not None else self.arguments
        self.ask(make, with_entries=found is not None and found.lacks_entries)

    def ask_another(self) -> None:
        """Give the shard to another worker too; the first answer counts."""
        self.pool.move(self.shard)
        self.ask(self.arguments if self.state is None else self.state)

    def drop(self) -> None:
        """Cancel what is still under way."""
        for future in self.futures:
            if future.status == "pending":
                future.cancel()
        self.futures = []

    @property
    def _lost(self) -> bool:
        """Whether no future is left that could bring an answer."""
        return all(future.status != "pending" for future in self.futures)

    def _found(self) -> Answer | None:
        """Return the first answer, if there is one."""
        for future in self.futures:
            if future.status == "finished":
                found = self._fetched(future)
                if found is None:
                    continue
                if found.too_large:
                    raise ClusterError(
                        f"A worker has no memory left for {self.shard}. Use more workers or "
                        "shards, or workers with more memory."
                    )
                return found
            if future.status == "error":
                _raise_unless_lost(future.exception())
        return None

    def _fetched(self, future: Any) -> Answer | None:
        """Return an answer, unless it is lost: Dask would wait for its worker to come back."""
        try:
            return future.result(timeout=FETCHING * 2**self.tries)
        except Exception:  # the worker that had it is gone since, or stands still
            return None


def _raise_unless_lost(error: BaseException) -> None:
    """Raise errors of ours; those that come with the loss of a worker are left out."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    if not isinstance(error, KilledWorker | CommClosedError | OSError):
        raise error
