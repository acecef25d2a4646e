"""Kill a fit twenty times at random moments, resume it each time, and compare with an undisturbed
one. A program of its own, because it forks: each life of the fit is a child process."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from smartcpd import datasets
from smartcpd._fitting.fit import fit

KILLS = 20
X, _ = datasets.count((60, 50, 40), 5, random_state=3)


def run(target, **where):
    found = fit(
        X,
        5,
        "poisson",
        solver="smd",
        tol=0,
        max_epochs=150,
        random_state=0,
        n_threads=1,
        progress=False,
        **where,
    )
    np.savez(target, *found.model.factors)


def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid


def main(folder):
    # Compiled code is there for the children; n_threads=1 starts no thread that they would miss.
    fit(X, 5, "poisson", solver="smd", max_epochs=1, random_state=0, n_threads=1, progress=False)
    began = time.perf_counter()
    os.waitpid(child(lambda: run(folder / "whole.npz")), 0)
    seconds = time.perf_counter() - began
    where = {"checkpoint": folder / "checkpoint", "checkpoint_every": seconds / 200}
    chance, kills = random.Random(1), 0
    while kills < KILLS:
        pid = child(lambda: run(folder / "resumed.npz", resume=True, **where))
        time.sleep(chance.uniform(0, seconds / 10))
        done, _ = os.waitpid(pid, os.WNOHANG)
        if done:
            sys.exit(f"The fit ended after {kills} kills; it should take longer.")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        kills += 1
    os.waitpid(child(lambda: run(folder / "resumed.npz", resume=True, **where)), 0)
    with np.load(folder / "whole.npz") as whole, np.load(folder / "resumed.npz") as resumed:
        same = all(np.array_equal(whole[name], resumed[name]) for name in whole.files)
    print(f"{kills} kills, {'same' if same else 'DIFFERENT'} factors")
    sys.exit(not same)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
