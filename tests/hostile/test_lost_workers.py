"""A worker that is lost between any two questions of a round changes no bit of the factors."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed")

from smartcpd import datasets
from smartcpd._common.stacked import stack
from smartcpd.distributed.inquiry import Inquiry
from smartcpd.distributed.rounds import Rounds
from smartcpd.distributed.sharing import shards_of
from smartcpd.distributed.worker import Answer, Held, LacksStateError, _loaded
from smartcpd.partitions import write_tensor

LOOKS = 3


class Forgetful:
    """Workers in this process, one of which is replaced by another before a chosen question."""

    def __init__(self, X, lost):
        self.shards = shards_of(X, 2)
        self.held = {shard.number: Held(shard, _loaded(shard, None)) for shard in self.shards}
        self.lost, self.questions = lost, 0

    def ask(self, question, arguments, state=None):
        answers = []
        for shard in self.shards:
            held = self.held[shard.number]
            if (self.questions, shard.number) == self.lost:
                held.state = {}
            try:
                answers.append(question(held, *arguments(shard), 1))
            except LacksStateError:
                answers.append(question(held, *state(shard), 1))
        self.questions += 1
        return answers


def looks(X, updates, lost=None):
    pool = Forgetful(X, lost)
    storage = SimpleNamespace(
        pool=pool, manifest=X.manifest, shape=X.shape, nnz=X.nnz, n_observed=X.n_observed
    )
    tracker = SimpleNamespace(entries=0, check_time=lambda: None)
    rng = np.random.default_rng(0)
    factors = [rng.random((size, 2)) + 0.1 for size in X.shape]
    rounds = Rounds(storage, tracker, stack([A / A.sum(axis=0) for A in factors]), updates)
    values = [rounds._made_rounds() for _ in range(LOOKS)]
    return rounds.A, values, pool.questions


@pytest.mark.parametrize("updates", [1, 2, 5])
def test_lost_before_any_question(updates, tmp_path):
    counts = datasets.events((40, 12, 10), 2, 2000, random_state=1).data
    X = write_tensor(tmp_path / "x.parts", counts, part_bytes=2000)
    A, values, questions = looks(X, updates)
    for question in range(1, questions):
        for shard in range(2):
            again = looks(X, updates, (question, shard))
            assert np.array_equal(A, again[0])
            assert values == again[1]


class Workers:
    """Two workers, of which the first answers, and stands still before the answer is fetched."""

    def __init__(self):
        self.homes = {0: "first"}

    def submit(self, inquiry, arguments, with_entries):
        if self.homes[0] == "second":
            return SimpleNamespace(status="finished", result=lambda timeout: Answer("answer"))

        def late(timeout):
            raise TimeoutError

        return SimpleNamespace(status="finished", result=late)

    def settle(self):
        """Nobody is gone."""

    def move(self, shard):
        self.homes[0] = "second"


def test_an_answer_that_cannot_be_fetched():
    shard = SimpleNamespace(number=0)
    inquiry = Inquiry(Workers(), shard, None, lambda shard: (), None)
    inquiry.ask(inquiry.arguments)
    for _ in range(2):
        inquiry.look({"first", "second"})
    assert inquiry.answer.value == "answer"
