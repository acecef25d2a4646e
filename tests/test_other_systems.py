"""Systems other than Linux: what they lack is simulated, since tests do not run there."""

import ast
import ctypes
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import smartcpd
from smartcpd._app.signals import Signals
from smartcpd._common import atomic, memory
from smartcpd._kernels import turns
from smartcpd._problem.checkpoints import folder_lock

SOURCES = Path(smartcpd.__file__).parent
POSIX_ONLY = {
    *("fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "nice", "register_at_fork"),
    *("sched_getaffinity", "set_blocking", "setsid", "statvfs", "sysconf", "uname", "wait3"),
    *("SIGALRM", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "pthread_sigmask"),
}
POSIX_MODULES = {"fcntl", "grp", "pwd", "resource", "termios", "tty"}

NAMED = re.compile(rf"(os|signal)\.({'|'.join(POSIX_ONLY)})|import ({'|'.join(POSIX_MODULES)})")


def guarded(node, parents):
    """Whether a node stands in a try, or under a question whether the system has it."""
    while node in parents:
        child, node = node, parents[node]
        if isinstance(node, ast.Try) and child in node.body:
            return True
        if isinstance(node, ast.If) and "hasattr" in ast.unparse(node.test):
            return True
    return False


def test_calls_that_only_posix_has_are_guarded():
    found = 0
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not NAMED.search(text):
            continue
        tree = ast.parse(text)
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            alone = isinstance(node, ast.Attribute) and node.attr in POSIX_ONLY
            alone = alone and ast.unparse(node.value) in ("os", "signal")
            if isinstance(node, ast.Import):
                alone = any(name.name in POSIX_MODULES for name in node.names)
            if alone:
                found += 1
                assert guarded(node, parents), f"{path}:{node.lineno}"
    assert found >= 5


def test_memory_where_there_is_no_sysconf(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert 0 < memory.of_machine() <= memory.UNTOLD

    def told(at):
        at._obj.physical = 3 * 10**9
        return 1

    windows = SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=told))
    monkeypatch.setattr(ctypes, "windll", windows, raising=False)
    assert memory._physical() == 3 * 10**9


def test_locks_where_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setattr(turns, "fcntl", None)
    monkeypatch.setattr(folder_lock, "fcntl", None)
    turn = turns.Turn(tmp_path / "a.lock")
    turn.wait()
    turn.end()
    first, second = (folder_lock.FolderLock(tmp_path) for _ in range(2))
    first.release()
    second.release()


def test_files_that_somebody_reads_are_replaced_a_little_later(monkeypatch, tmp_path):
    attempts = []
    real = os.replace

    def busy(source, target):
        attempts.append(target)
        if len(attempts) < 3:
            raise PermissionError("in use")
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", busy)
    monkeypatch.setattr(atomic, "PAUSES", (0.0, 0.0, 0.0))
    with pytest.raises(PermissionError):
        atomic.replace_file(tmp_path / "a", b"new")
    attempts.clear()
    monkeypatch.setattr(atomic, "WINDOWS", True)
    atomic.replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_signals_where_pipes_cannot_be_made_to_not_wait(monkeypatch, elsewhere):
    # POSIX insists on a pipe that does not wait; Windows does not, and may lack the call.
    if not hasattr(os, "pipe2"):
        pytest.skip("no pipe2 on this system")
    monkeypatch.setattr(os, "pipe", lambda: os.pipe2(os.O_NONBLOCK))
    monkeypatch.delattr(os, "set_blocking")
    owner = Signals()
    monkeypatch.setattr(owner, "_answer", lambda pipe: os.close(pipe))
    with owner.owned():
        owner.heed()
