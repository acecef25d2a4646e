"""A fit that is interrupted in its first stage goes on, and reports what it would have reported."""

import sys

import numpy as np
import pytest
import zarr

from smartcpd import datasets
from smartcpd._fitting.fit import fit
from smartcpd._problem.checkpoints.journal import Journal

X, _ = datasets.count((60, 50, 40), 3, a_max=1.5, random_state=1)


@pytest.fixture(params=["subsampled", "tiled"])
def asked(request, tmp_path):
    """A fit that begins with a part of the data: in memory, and on disk."""
    more = {"rank": 3, "loss": "poisson", "random_state": 7, "progress": False}
    if request.param == "subsampled":
        return {"X": X, "solver": "subsampled"} | more
    held = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, chunks=(20, 25, 20), dtype="f8")
    held[:] = X
    return {"X": held, "solver": "tiled", "max_memory": 1_000_000} | more


def test_interrupted_in_the_first_stage(asked, tmp_path):
    whole = fit(**asked)

    def interrupt(report):
        raise KeyboardInterrupt

    where = {"checkpoint": tmp_path / "checkpoint", "checkpoint_every": 0}
    stopped = fit(**asked, **where, callback=interrupt)
    assert stopped.status.interrupted
    found = fit(**asked, **where, resume=True)
    again = fit(**asked, **where, resume=True)
    for each in (found, again):
        assert all(map(np.array_equal, whole.model.factors, each.model.factors))
        assert each.status == whole.status
        assert each.loss == whole.loss


def test_interrupted_before_anything_was_recorded(asked, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("smartcpd._strategies.subtensor_fit.SubtensorFit.extended", interrupt)
    if asked["solver"] == "subsampled":  # as it is chosen for large data, and settled afterwards
        monkeypatch.setattr("smartcpd._strategies.in_memory.FULL_PASSES", 1)
        asked = asked | {"solver": "auto"}
    assert fit(**asked).status.interrupted


class Stages:
    """Three stages that draw numbers from one generator, the last two of them inside of another."""

    def __init__(self, journal):
        self.journal, self.rng = journal, np.random.default_rng(0)

    def drawn(self):
        return self.journal.stage((self.rng,), lambda: [self.rng.random()])

    def inside(self):
        return [*self.drawn(), *self.drawn()]

    def run(self):
        return [*self.drawn(), *self.journal.stage((self.rng,), self.inside), self.rng.random()]


def test_interrupted_between_any_two_lines_of_a_checkpoint(tmp_path):
    """A stage of which only a part was kept was taken for done, and its result was None."""
    whole = Stages(Journal()).run()
    lines = 0

    def interrupt(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename != Journal.stage.__code__.co_filename:
            return None
        lines -= event == "line"
        if lines == 0:
            raise KeyboardInterrupt
        return interrupt

    tried = 0
    while lines <= 0:
        tried += 1
        (tmp_path / "x.checkpoint").unlink(missing_ok=True)
        journal = Journal(tmp_path, every=1e9).branch("x")
        before, lines = sys.gettrace(), tried
        sys.settrace(interrupt)
        try:
            Stages(journal).run()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        journal.write()
        assert Stages(Journal(tmp_path, every=1e9).branch("x")).run() == whole, tried
    assert tried > 50
