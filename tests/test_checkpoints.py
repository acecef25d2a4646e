"""A fit that is stopped and resumed ends with the same bits as one that never was."""

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smartcpd import CPModel, SmartCPD, SparseTensor, datasets
from smartcpd._fitting.fit import fit
from smartcpd._problem.checkpoints import journal as journal_module
from smartcpd._problem.checkpoints.journal import Journal
from smartcpd._problem.checkpoints.values import freeze, restore, thaw
from smartcpd.errors import CheckpointError, IncompatibleError

COUNTS, _ = datasets.count((14, 12, 10), 3, a_max=1.5, random_state=1)
POSITIVE, _ = datasets.gamma((14, 12, 10), 3, random_state=1)
EVENTS, _ = datasets.events((40, 30, 20), 3, n_events=3000, random_state=1)
YES_NO = SparseTensor(tuple(EVENTS.indices), np.ones(EVENTS.nnz, np.uint8), EVENTS.shape)
UNIT = COUNTS / COUNTS.sum()
HOLED = np.where(np.random.default_rng(0).random(COUNTS.shape) < 0.3, np.nan, COUNTS)
UNSEEN = np.random.default_rng(0).integers((40, 30, 20), size=(500, 3))
FEW = SparseTensor(UNSEEN, np.random.default_rng(1).poisson(3.0, 500), (40, 30, 20), "unobserved")

FITS = {
    "dense": (COUNTS, "poisson", {"solver": "dense"}),
    "dense, many starts": (COUNTS, "poisson", {"solver": "dense", "n_init": 3, "max_epochs": 40}),
    "dense, crowded": (COUNTS[:6, :6, :2], "poisson", {"solver": "dense", "max_epochs": 120}),
    "dense, logarithms": (COUNTS[:8] > 4, "bernoulli-logit", {"max_epochs": 300}),
    "subsampled": (COUNTS, "poisson", {"solver": "subsampled"}),
    "gamma": (POSITIVE, "gamma", {}),
    "dense, missing cells": (HOLED, "poisson", {"n_init": 3, "max_epochs": 40}),
    "simplex": (UNIT, "poisson", {"constraint": "simplex"}),
    "few-events": (COUNTS * (COUNTS > 8), "poisson", {"solver": "few-events"}),
    "sparse": (EVENTS, "poisson", {}),
    "sparse, yes/no": (YES_NO, "bernoulli-odds", {"max_epochs": 60}),
    "sparse, missing cells": (EVENTS.with_missing(UNSEEN), "poisson", {}),
    "completion": (FEW, "poisson", {"tol": 0.1, "max_epochs": 50}),
    "smd": (COUNTS, "poisson", {"solver": "smd", "max_epochs": 40}),
    "smd, phases": (POSITIVE, "gamma", {"solver": "smd", "step": "mixed", "max_epochs": 40}),
    "smd, sparse": (YES_NO, "bernoulli-logit", {"solver": "smd", "max_epochs": 8}),
    "mm": (COUNTS, "poisson", {"solver": "mm", "n_init": 3, "max_epochs": 40}),
    "mm, gamma": (POSITIVE, "gamma", {"solver": "mm", "max_epochs": 60}),
    "md": (COUNTS, "poisson", {"solver": "md", "max_epochs": 40}),
    "als": (POSITIVE, "gaussian", {"solver": "als", "max_epochs": 60}),
    "hals": (POSITIVE, "gaussian", {"solver": "hals", "max_epochs": 30}),
    "ao-admm": (COUNTS, "gaussian", {"solver": "ao-admm", "max_epochs": 30}),
    "ao-admm, counts": (COUNTS, "poisson", {"solver": "ao-admm", "max_epochs": 15}),
    "row-newton": (COUNTS, "poisson", {"solver": "row-newton", "max_epochs": 15}),
    "brascpd": (POSITIVE, "gaussian", {"solver": "brascpd", "max_epochs": 15}),
    "lbfgs": (COUNTS, "poisson", {"solver": "lbfgs"}),
    "lbfgs, sparse": (YES_NO, "bernoulli-odds", {"solver": "lbfgs", "max_epochs": 70}),
    "ggn": (COUNTS, "poisson", {"solver": "ggn"}),
    "gcp-adam": (COUNTS, "poisson", {"solver": "gcp-adam", "max_epochs": 6}),
    "warm starts": (COUNTS, "poisson", {"init": "smd", "solver": "mm", "n_init": 4}),
}


class Killed(BaseException):
    """Nothing in the package catches this."""


def fitted(X, loss, parameters, **more):
    return fit(X, 3, loss, random_state=7, progress=False, **parameters, **more)


def same(one, other):
    pairs = zip(one.model.factors, other.model.factors, strict=True)
    return all(np.array_equal(A, B) for A, B in pairs)


@pytest.fixture
def killing(monkeypatch):
    """Ends the fit right after so many writes."""
    left = [0]
    write = Journal.write

    def write_and_die(self):
        write(self)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(Journal, "write", write_and_die)

    def set_to(n):
        left[0] = n

    return set_to


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_killed_and_resumed_many_times(name, killing, tmp_path):
    X, loss, parameters = FITS[name]
    whole = fitted(X, loss, parameters)
    chance = random.Random(name)
    kills, found = 0, None
    while found is None:
        killing(chance.randint(1, 4 + 8 * kills))
        try:
            found = fitted(
                X, loss, parameters, checkpoint=tmp_path, checkpoint_every=0, resume=kills > 0
            )
        except Killed:
            kills += 1
    assert kills > 0
    assert same(whole, found)
    assert found.status == whole.status
    columns = ("epoch", "entries", "loss", "phase")
    for column in columns:
        assert list(found.history[column]) == list(whole.history[column])


def test_starts_side_by_side_can_be_resumed_one_after_the_other(tmp_path):
    X, loss, parameters = FITS["warm starts"]
    whole = fitted(X, loss, parameters)
    seen = []

    def stop(report):
        seen.append(report)
        return len(seen) > 60

    where = {"checkpoint": tmp_path, "checkpoint_every": 0}
    fitted(X, loss, parameters, n_jobs=2, callback=stop, **where)
    assert same(whole, fitted(X, loss, parameters, resume=True, **where))


SIGKILL = Path(__file__).with_name("killed_fit.py")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_sigkill_at_twenty_random_moments(tmp_path):
    done = subprocess.run(
        [sys.executable, SIGKILL, tmp_path], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 kills, same factors" in done.stdout


class TestInterrupts:
    def test_an_interrupted_fit_goes_on(self, tmp_path):
        X, loss, parameters = FITS["smd"]
        whole = fitted(X, loss, parameters)

        def interrupt(report):
            if report.record.epoch == 25:
                raise KeyboardInterrupt

        where = {"checkpoint": tmp_path, "checkpoint_every": 0}
        stopped = fitted(X, loss, parameters, callback=interrupt, **where)
        assert stopped.status.interrupted
        assert same(whole, fitted(X, loss, parameters, resume=True, **where))

    def test_a_fit_without_a_seed_goes_on_with_its_own(self, tmp_path, killing):
        where = {"checkpoint": tmp_path, "checkpoint_every": 0}
        killing(3)
        with pytest.raises(Killed):
            fit(COUNTS, 3, "poisson", solver="mm", **where)
        killing(0)
        first = fit(COUNTS, 3, "poisson", solver="mm", resume=True, **where)
        assert same(first, fit(COUNTS, 3, "poisson", solver="mm", resume=True, **where))

    def test_a_finished_fit_returns_at_once(self, tmp_path):
        X, loss, parameters = FITS["mm"]
        seen = []
        first = fitted(X, loss, parameters, checkpoint=tmp_path)
        again = fitted(X, loss, parameters, checkpoint=tmp_path, resume=True, callback=seen.append)
        assert same(first, again)
        assert not seen

    def test_without_resume_an_old_checkpoint_is_not_used(self, tmp_path):
        fitted(COUNTS, "poisson", {"solver": "mm"}, checkpoint=tmp_path)
        other = fitted(COUNTS, "poisson", {"solver": "md", "max_epochs": 5}, checkpoint=tmp_path)
        assert same(other, fitted(COUNTS, "poisson", {"solver": "md", "max_epochs": 5}))


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"rank": 4}, "rank was 3 and is 4"),
            ({"loss": "beta(1.5)"}, "loss was 'poisson' and is 'beta.1.5.'"),
            ({"solver": "md"}, "solver was 'mm' and is 'md'"),
            ({"constraint": ["nonnegative", "simplex", "nonnegative"]}, "constraint was 'auto'"),
            ({"random_state": 1}, "random state"),
            ({"X": COUNTS + 1}, "data is another"),
            ({"init": [np.ones((n, 3)) for n in COUNTS.shape]}, "init was 'random'"),
        ],
    )
    def test_another_fit(self, change, message, tmp_path):
        asked = {"X": COUNTS, "rank": 3, "loss": "poisson", "solver": "mm", "random_state": 0}
        fit(**asked, checkpoint=tmp_path)
        with pytest.raises(CheckpointError, match=message):
            fit(**(asked | change), checkpoint=tmp_path, resume=True)

    def test_limits_and_threads_may_change(self, tmp_path):
        asked = {"X": COUNTS, "rank": 3, "loss": "poisson", "random_state": 0}
        first = fit(**asked, checkpoint=tmp_path)
        again = fit(**asked, checkpoint=tmp_path, resume=True, max_time=60, n_threads=1)
        assert same(first, again)

    def test_damaged_files(self, tmp_path):
        asked = {"X": COUNTS, "rank": 3, "loss": "poisson", "random_state": 0}
        fit(**asked, checkpoint=tmp_path)
        [file] = tmp_path.glob("*.checkpoint")
        file.write_bytes(file.read_bytes()[:200])
        with pytest.raises(CheckpointError, match="damaged"):
            fit(**asked, checkpoint=tmp_path, resume=True)
        (tmp_path / "checkpoint.json").write_text("{}")
        with pytest.raises(CheckpointError, match="does not describe a checkpoint"):
            fit(**asked, checkpoint=tmp_path, resume=True)

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(CheckpointError, match="cannot be written"):
            fit(COUNTS, 3, "poisson", checkpoint=tmp_path / "file" / "sub")

    def test_a_disk_without_room(self, tmp_path, monkeypatch):
        usage = journal_module.shutil.disk_usage(tmp_path)._replace(free=1000)
        monkeypatch.setattr(journal_module.shutil, "disk_usage", lambda path: usage)
        with pytest.raises(CheckpointError, match=r"0\.001 MB left"):
            fit(COUNTS, 3, "poisson", checkpoint=tmp_path)

    def test_a_disk_that_fills_up_does_not_end_the_fit(self, tmp_path, monkeypatch):
        def full(path, tree, mark):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(journal_module, "write_tree", full)
        with pytest.warns(RuntimeWarning, match="No space left"):
            found = fit(COUNTS, 3, "poisson", random_state=0, checkpoint=tmp_path)
        assert same(found, fit(COUNTS, 3, "poisson", random_state=0))

    def test_resume_needs_a_folder(self):
        with pytest.raises(IncompatibleError, match="checkpoint=path"):
            SmartCPD(3, resume=True).fit(COUNTS)


class TestValues:
    def test_what_goes_in_comes_out(self):
        value = {
            "a": [1, 2.5, None, "text", True],
            "b": (np.arange(3), np.float32(0.1)),
            "c": np.asfortranarray(np.eye(3)),
        }
        plain = freeze(value)
        value["b"][0][0] = 99
        again = thaw(plain)
        assert again["a"] == [1, 2.5, None, "text", True]
        np.testing.assert_array_equal(again["b"][0], [0, 1, 2])
        assert isinstance(again["b"][1], np.float32)
        assert again["c"].flags.f_contiguous

    def test_generators_go_on_with_numbers_and_children(self):
        one, two = np.random.default_rng(0), np.random.default_rng(0)
        one.random(5)
        one.spawn(2)
        restore(two, freeze(one))
        assert one.random() == two.random()
        assert one.spawn(1)[0].random() == two.spawn(1)[0].random()

    def test_anything_else_is_refused(self):
        with pytest.raises(TypeError, match="CPModel"):
            freeze(CPModel([np.ones((2, 1)), np.ones((2, 1))]))
