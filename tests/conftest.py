"""Fixtures of several files: the command line, called in a folder of the test's own."""

import os
import signal

import pytest

# Fits keep the linear algebra library to one thread. Tests of what is inside them do not, and its
# threads then spin while they wait, on cores that other workers need. Read when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SMARTCPD_DEBUG", raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    os.environ.pop("SMARTCPD_DEBUG", None)


@pytest.fixture
def run(capsys):
    from smartcpd._app.cli import main  # most tests need none of it

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call
