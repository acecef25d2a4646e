"""A small model of which reports are written in tests, with labels that nobody should trust."""

import numpy as np

from smartcpd import CPModel, Mode
from smartcpd._fitting.consensus import Stability
from smartcpd._inference.diagnosis import Diagnosis, Finding, Severity
from smartcpd._problem.history import History, Record, Status
from smartcpd.quality import measure
from smartcpd.report import write_report

EVIL = "<script>alert(1)</script>"
NAMES = (EVIL, '"><img src=x onerror=alert(2)>', "a & b", "</script>", "line\u2028end", "$title")
MODES = (
    Mode("day", np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]")),
    Mode("hour", np.arange(24), "cycle"),
    Mode("place <i>", [*NAMES, *(f"place {k}" for k in range(24))]),
    Mode("size", [0.5, 1.0, 2.0, 4.0]),
)
SHAPE = tuple(len(mode) for mode in MODES)
RNG = np.random.default_rng(0)
FACTORS = [RNG.gamma(0.5, 1.0, (size, 3)) for size in SHAPE]
FACTORS[2][: len(NAMES)] += 2.0
MODEL = CPModel(FACTORS, None, "poisson", MODES)
X = RNG.poisson(MODEL.full())
HISTORY = History(Record(0.1 * k, k, k, 1.0 / (k + 1), 0.0, "ab"[k > 5]) for k in range(12))
STATUS = Status(True, "Converged: nothing <b>moved</b>.")
DIAGNOSIS = Diagnosis(
    (
        Finding("over-dispersion", Severity.WARNING, "wide", f"In {EVIL}, so wide.", "Narrow it."),
        Finding("too few events", Severity.NOTE, "few", "Few of them.", "Gather more."),
    ),
    ("over-dispersion", "observations"),
)


def full_report(path):
    """With everything that a report can have."""
    return write_report(
        path,
        MODEL,
        history=HISTORY,
        status=STATUS,
        quality=measure(MODEL, X),
        settings={"random_state": 7, "file": "events <1>.csv", "tol": 0.02},
        notes=["3 rows had no place & were left out."],
        command="smartcpd fit 'events <1>.csv' --modes day,hour,place,size",
        stability=Stability((0.98, 0.3, 1.0), (5, 2, 5), 5),
        diagnosis=DIAGNOSIS,
    )
