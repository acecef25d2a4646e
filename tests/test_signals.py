"""Signals at any moment: answered at once, the right exit code, nothing lost, no traceback."""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import smartcpd
from smartcpd._app.signals import ANSWER, Signals

pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]
ENVIRONMENT = dict(os.environ, PYTHONPATH=str(Path(smartcpd.__file__).parent.parent))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_answered_while_modules_are_imported(number, tmp_path):
    """The slow import is one of our own, so that the moment is sure."""
    slow = "import smartcpd._app.cli, sys, types, time\n"
    slow += "class Finder:\n def find_spec(self, name, *_):\n"
    slow += "  if name == 'typer': print('now', flush=True); time.sleep(60)\n"
    slow += "sys.meta_path.insert(0, Finder())\nsmartcpd._app.cli.main(['--version'])"
    process = subprocess.Popen(
        [sys.executable, "-c", slow], env=ENVIRONMENT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "now\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert err == f"{ANSWER}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_amid_code_made_of_text_keeps_its_exit_code(number, tmp_path):
    """Python ends by SIGINT if an interrupt passes through such code, as dataclasses make."""
    (tmp_path / "interrupted.py").write_text(
        "from smartcpd._app import cli\n"
        "from smartcpd._app.cli import app\n"
        f"kill = 'import signal, time; signal.raise_signal({int(number)}); time.sleep(9)'\n"
        "app.commanded = lambda arguments: exec(kill)\n"
        "cli.main([])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 128 + number
    assert ANSWER in done.stderr


class TestSignals:
    @pytest.fixture
    def owner(self, elsewhere, capfd):
        owner = Signals()
        with owner.owned():
            yield owner

    def test_an_interrupt_is_raised_and_answered(self, owner, capfd):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert owner.code == 143
        until = time.monotonic() + 10
        while not (said := capfd.readouterr().err) and time.monotonic() < until:
            time.sleep(0.01)
        assert said == f"{ANSWER}\n"

    def test_what_must_not_be_cut_in_two_is_not(self, owner):
        with owner.held():
            signal.raise_signal(signal.SIGINT)
            owner.heed()
        with pytest.raises(KeyboardInterrupt):
            owner.heed()

    def test_an_interrupt_that_is_swallowed_comes_again(self, owner):
        class Swallows:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)

        def wait(seconds):
            """An interrupt that comes again does not cut a sleep short, only end a loop of them."""
            for _ in range(100 * seconds):
                time.sleep(0.01)

        Swallows()
        with pytest.raises(KeyboardInterrupt):
            wait(10)

    @pytest.mark.parametrize("moment", ["_data.files.read", "_problem.loss_choice.choose_loss"])
    def test_a_signal_that_a_library_swallowed_is_heeded_after_reading(
        self, moment, run, monkeypatch
    ):
        np.save("X.npy", np.ones((4, 3, 2)))
        module, _, name = f"smartcpd.{moment}".rpartition(".")
        real = getattr(importlib.import_module(module), name)

        def swallowed(*args, **kwargs):
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            return real(*args, **kwargs)

        where = "smartcpd._app.cli.inputs.read" if name == "read" else f"{module}.{name}"
        monkeypatch.setattr(where, swallowed)
        code, out, _ = run("fit", "X.npy", "-r", 1, "--json")
        assert code == 143
        assert name == "choose_loss" or "Interrupted" in json.loads(out)["error"]


def test_an_interrupt_between_two_runs_keeps_the_best_model(monkeypatch):
    from smartcpd._strategies.restarts import Restarts

    def interrupted(*args):
        raise KeyboardInterrupt

    X, _ = smartcpd.datasets.count((6, 5, 4), rank=1, random_state=0)
    monkeypatch.setattr(Restarts, "_settled", interrupted)
    found = smartcpd.SmartCPD(2, "poisson", random_state=0).fit(X)
    assert found.status_.interrupted
    assert np.isfinite(found.loss_)
    assert found.model_.rank == 2


class TestJson:
    def test_errors_are_one_object(self, run):
        for words, code in (("fit nothing.csv", 1), ("fit X.npy -r x", 2), ("show nothing", 1)):
            found, out, _ = run(*words.split(), "--json")
            assert found == code
            assert list(json.loads(out)) == ["error"]
