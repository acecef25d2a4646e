"""The doctor says nothing about data that is as the model says, and finds what was planted."""

import csv
import json

import numpy as np
import pytest

from smartcpd import CPModel, Mode, SmartCPD, SparseTensor, losses
from smartcpd._app.run_folder import RunFolder, RunRecord
from smartcpd._fitting.fit import fit
from smartcpd._inference.diagnosis import Diagnosis, Finding, Severity, diagnose, distribution
from smartcpd._inference.diagnosis.trial import Trial
from smartcpd._problem.history import History, Record, Status
from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.losses import Domain
from smartcpd.quality import reading
from smartcpd.report import write_report

SHAPE = (16, 14, 12)
NAMES = (
    "gaussian",
    "poisson",
    "poisson-log",
    "negative-binomial(3)",
    "bernoulli-odds",
    "bernoulli-logit",
    "gamma",
    "beta(0.5)",
    "rayleigh",
    "huber(1)",
)


def truth(name, shape=SHAPE, rank=3, seed=0, scale=1.0):
    """A model of a loss, and data drawn from it."""
    rng = np.random.default_rng(seed)
    loss = losses.get(name)
    signed = loss.domain is Domain.REAL
    factors = [
        rng.standard_normal((n, rank)) if signed else rng.gamma(1.0, 1.0, (n, rank)) for n in shape
    ]
    factors[0] *= {"poisson-log": 0.3, "bernoulli-odds": 0.3}.get(name, 1.0) * scale
    model = CPModel(factors, loss_function=loss)
    X = np.asarray(loss.simulate(model.values(tuple(np.indices(shape))), rng), float)
    return model, X if loss.allows_zeros else np.maximum(X, 1e-6)


MODEL, COUNTS = truth("poisson")
MEAN = MODEL.full()
RNG = np.random.default_rng(1)


def names(model, X, **more):
    return [f.name for f in diagnose(model, X, **more) if f.severity is Severity.WARNING]


class TestClean:
    @pytest.mark.parametrize("name", NAMES)
    def test_data_drawn_from_the_model(self, name):
        for seed in range(3):
            model, X = truth(name, seed=seed)
            diagnosis = model.diagnose(X)
            assert diagnosis.ok, diagnosis
        assert "convergence" in diagnosis.checked
        assert ("over-dispersion" in diagnosis.checked) == (
            model.loss_function.data.name == "COUNTS"
        )
        assert ("calibration" in diagnosis.checked) == (model.loss_function.data.name == "BINARY")

    @pytest.mark.parametrize("name", ["poisson", "bernoulli-odds", "gaussian"])
    def test_a_fit_of_its_own_data(self, name):
        _, X = truth(name)
        estimator = SmartCPD(3, name, random_state=0).fit(X)
        diagnosis = estimator.diagnose(X)
        assert diagnosis.ok, diagnosis

    def test_amounts_that_are_no_counts(self):
        diagnosis = diagnose(MODEL, COUNTS * 0.37)
        assert "over-dispersion" not in diagnosis.checked

    def test_a_loss_of_the_users_own(self):
        loss = losses.custom(lambda x, m: (x - m) ** 2.0, lambda x, m: 2.0 * (m - x))
        model, X = truth("gaussian")
        assert CPModel(model.factors, loss_function=loss).diagnose(X).ok

    @pytest.mark.parametrize("shape", [(40, 30), (8, 7, 6, 5), (1, 30, 20)])
    def test_any_order(self, shape):
        model, X = truth("poisson", shape=shape, rank=2)
        assert diagnose(model, X).ok

    def test_constraints_of_the_fit_are_known(self):
        X = COUNTS / COUNTS.sum()
        estimator = SmartCPD(3, "poisson", constraint=["simplex"] * 2 + ["nonnegative"])
        assert estimator.set_params(random_state=0).fit(X).diagnose(X).ok


class TestPlanted:
    def test_dead(self):
        factors = [A.copy() for A in MODEL.factors]
        factors[1][:, 2] *= 1e-7
        model = CPModel(factors, loss_function="poisson")
        diagnosis = diagnose(model, RNG.poisson(model.full()))
        assert diagnosis["dead components"].figures["components"] == [2]
        assert "rank=2" in diagnosis["dead components"].advice

    def test_duplicate(self):
        factors = [np.column_stack([A, A[:, 0]]) for A in MODEL.factors]
        model = CPModel(factors, [0.5, 1, 1, 0.5], "poisson")
        finding = diagnose(model, COUNTS)["duplicate components"]
        assert finding.figures["pairs"] == [[0, 3]]
        assert diagnose(model, COUNTS)["duplicate components"].brief == (
            "components 1 and 4 are the same"
        )

    def test_diverging(self):
        model, X = truth("gaussian")
        A, B, C = (F[:, :1] for F in model.factors)
        near = CPModel(
            [
                np.hstack([F, a, b])
                for F, a, b in zip(model.factors, (A, B, C), (A, B, C), strict=True)
            ],
            [1, 1, 1, 1e4, -1e4],
            "gaussian",
        )
        finding = diagnose(near, X)["diverging components"]
        assert [3, 4] in finding.figures["pairs"]
        assert finding.figures["largest_over_model"] > 100

    def test_separation(self):
        model = CPModel([np.full((n, 1), 5.0) for n in SHAPE], loss_function="bernoulli-logit")
        assert "separation" in names(model, np.ones(SHAPE))

    def test_the_fit_says_so_itself(self):
        estimator = SmartCPD(3, "poisson", solver="smd", max_epochs=3, random_state=0).fit(COUNTS)
        finding = estimator.diagnose(COUNTS)["non-convergence"]
        assert "max_epochs" in finding.meaning
        assert 0 <= finding.figures["last_tenth"] <= 1

    @pytest.mark.parametrize("name", ["poisson", "bernoulli-odds", "gamma", "gaussian"])
    def test_the_gradient_says_so(self, name):
        _, X = truth(name)
        solver = "als" if name == "gaussian" else "mm"
        hasty = SmartCPD(3, name, solver=solver, max_epochs=1, random_state=0).fit(X)
        finding = diagnose(hasty.model_, X)["non-convergence"]
        assert finding.figures["over_noise"] > 2.5
        assert finding.figures["kkt_residual"] > 1e-3

    def test_starts_that_disagree(self):
        noise = np.random.default_rng(0).poisson(1.0, (12, 11, 10))
        parameters = {"solver": "mm", "n_init": 3, "consensus": True, "random_state": 0}
        estimator = SmartCPD(5, "poisson", **parameters).fit(noise)
        assert not estimator.consensus_.agree
        finding = estimator.diagnose(noise)["disagreeing starts"]
        assert finding.figures["differing"] == estimator.consensus_.differing

    @pytest.mark.parametrize("r", [1.0, 3.0, 10.0])
    def test_over_dispersion(self, r):
        X = RNG.negative_binomial(r, r / (r + MEAN))
        finding = diagnose(MODEL, X)["over-dispersion"]
        assert finding.figures["r"] == pytest.approx(r, rel=0.3)
        assert "Use loss 'negative-binomial(auto)'" in finding.advice
        assert f"negative-binomial({finding.figures['r']:.2g})" in finding.brief
        right = CPModel([MODEL.factors[0] / r, *MODEL.factors[1:]], None, f"negative-binomial({r})")
        assert diagnose(right, X).ok

    @pytest.mark.parametrize("growth", [7.0, np.nan])
    def test_no_advice_that_breaks_a_fit(self, growth, monkeypatch):
        broken = Trial(losses.get("negative-binomial(0.3)"), growth)
        monkeypatch.setattr(distribution, "tried", lambda case, name: broken)
        finding = diagnose(MODEL, RNG.negative_binomial(1, 1 / (1 + MEAN)))["over-dispersion"]
        assert "Use loss" not in finding.advice
        assert "would allow for it" not in finding.brief

    def test_too_large_an_r(self):
        X = RNG.negative_binomial(2, 2 / (2 + MEAN))
        loss = "negative-binomial(20)"
        model = CPModel([MODEL.factors[0] / 20, *MODEL.factors[1:]], None, loss)
        assert diagnose(model, X)["over-dispersion"].figures["r"] == pytest.approx(2, rel=0.3)

    def test_zero_inflation(self):
        X = RNG.poisson(MEAN / 0.7) * (RNG.random(SHAPE) < 0.7)
        finding = diagnose(MODEL, X)["zero inflation"]
        assert finding.figures["zeros"] > 1.1 * finding.figures["expected_zeros"]

    def test_zeros_of_wide_scatter_are_no_reason_of_their_own(self):
        for seed in range(4):
            rng = np.random.default_rng(seed)
            found = names(MODEL, rng.negative_binomial(1, 1 / (1 + MEAN)))
            assert "over-dispersion" in found
            assert "zero inflation" not in found

    @pytest.mark.parametrize("name", ["bernoulli-odds", "bernoulli-logit"])
    def test_probabilities_that_do_not_come_true(self, name):
        model, X = truth(name)
        factor = 3.0 if name == "bernoulli-odds" else 2.5
        bold = CPModel([model.factors[0] * factor, *model.factors[1:]], loss_function=name)
        assert "badly calibrated probabilities" in names(bold, X)

    @pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma", "rayleigh"])
    def test_a_cell_that_dominates(self, name):
        model, X = truth(name)
        X[3, 4, 5] = 1e4 * max(1.0, float(model.full()[3, 4, 5]))
        diagnosis = diagnose(model, X)
        assert diagnosis["dominant cells"].figures["cells"][0] == [3, 4, 5]

    def test_a_cell_with_a_component_of_its_own(self):
        X = COUNTS.copy()
        X[3, 4, 5] = 20000
        estimator = SmartCPD(3, "poisson", random_state=0).fit(X)
        finding = estimator.diagnose(X)["dominant cells"]
        assert [3, 4, 5] in finding.figures["cells"]

    def test_rows_of_which_little_is_known(self):
        X = COUNTS.copy()
        X[:, 5] = np.nan
        X[0, 5, :2] = 1.0
        diagnosis = diagnose(MODEL, X)
        assert diagnosis["too few observed cells"].figures == {"mode 1": 1}
        sparse = COUNTS.copy()
        sparse[:, 5] = 0
        sparse[2, 5, 2] = 2
        diagnosis = diagnose(MODEL, sparse)
        assert diagnosis["too few events"].severity is Severity.NOTE


class TestStorages:
    X = RNG.negative_binomial(2, 2 / (2 + MEAN))

    def same(self, one, two, model=MODEL):
        first = [(f.name, _numbers(f.figures)) for f in diagnose(model, **one)]
        second = [(f.name, _numbers(f.figures)) for f in diagnose(model, **two)]
        assert [n for n, _ in first] == [n for n, _ in second]
        for (_, a), (_, b) in zip(first, second, strict=True):
            assert a == pytest.approx(b, rel=1e-6)

    def test_sparse_as_dense(self):
        where = np.nonzero(self.X)
        sparse = SparseTensor(where, self.X[where], SHAPE)
        self.same({"X": self.X}, {"X": sparse})

    def test_what_is_masked_has_no_influence(self):
        seen = RNG.random(SHAPE) < 0.7
        wild = np.where(seen, self.X, 10**6)
        holed = np.where(seen, self.X, np.nan)
        where = np.nonzero(seen)
        listed = SparseTensor(where, self.X[where], SHAPE, "unobserved")
        zeros = np.nonzero(self.X)
        marked = SparseTensor(zeros, self.X[zeros], SHAPE, missing=np.argwhere(~seen))
        for other in ({"X": holed}, {"X": listed}, {"X": marked}):
            self.same({"X": wild, "mask": seen}, other)

    def test_weights_of_one_change_nothing(self):
        self.same({"X": self.X}, {"X": self.X, "weights": np.ones(SHAPE)})

    def test_weights_do_not_make_chance_significant(self):
        assert diagnose(MODEL, COUNTS, weights=np.full(SHAPE, 100.0)).ok

    def test_a_sample_says_the_same(self, monkeypatch):
        model, _ = truth("poisson", shape=(50, 40, 30))
        X = np.random.default_rng(0).negative_binomial(2, 2 / (2 + model.full()))
        whole = diagnose(model, X)["over-dispersion"].figures
        monkeypatch.setattr(reading, "READ_WHOLE", 1 << 15)
        monkeypatch.setattr(reading, "SLAB_CELLS", 1 << 13)
        part = diagnose(model, X)
        assert part.sampled_cells == 1 << 15
        assert part["over-dispersion"].figures["r"] == pytest.approx(whole["r"], rel=0.2)
        assert str(part) == str(diagnose(model, X))
        assert "sample of 32,768 cells" in str(part)

    def test_zeros_of_a_large_sparse_tensor_are_sampled(self, monkeypatch):
        shape = (60, 50, 40)
        model, X = truth("poisson", shape=shape, scale=0.02)
        where = np.nonzero(X)
        sparse = SparseTensor(where, X[where], shape)
        monkeypatch.setattr(reading, "READ_WHOLE", 1 << 10)
        monkeypatch.setattr(reading, "SAMPLE", 1 << 15)
        assert diagnose(model, sparse).ok
        bursts = X * np.random.default_rng(0).integers(1, 8, shape)
        assert "over-dispersion" in names(model, SparseTensor(where, bursts[where], shape))

    def test_nothing_is_changed(self):
        before = self.X.copy()
        diagnose(MODEL, self.X)
        np.testing.assert_array_equal(self.X, before)


def _numbers(figures):
    return [float(v) for v in figures.values() if isinstance(v, int | float)]


class TestResult:
    FINDING = Finding("over-dispersion", Severity.WARNING, "wide <b>", "It is.", "Do.", {"r": 2.0})
    NOTE = Finding("too few events", Severity.NOTE, "rows", "Rows.", "Leave them.", {"a": 3})

    def test_reading_it(self):
        diagnosis = Diagnosis((self.FINDING, self.NOTE), ("one", "two"))
        assert not diagnosis.ok
        assert Diagnosis((self.NOTE,), ("one",)).ok
        assert len(diagnosis) == 2
        assert list(diagnosis) == [self.FINDING, self.NOTE]
        assert diagnosis["too few events"] is self.NOTE
        with pytest.raises(KeyError, match="there is: over-dispersion, too few events"):
            diagnosis["nothing"]
        text = str(diagnosis)
        assert "WARNING: over-dispersion\n  It is.\n  Do." in text
        assert "Checked: one, two." in text
        assert str(Diagnosis((), ("one",))).startswith("Nothing wrong was found.")
        assert str(self.FINDING) == "warning: over-dispersion. It is. Do."

    def test_to_json_and_back(self):
        diagnosis = Diagnosis((self.FINDING, self.NOTE), ("one",), 7)
        assert Diagnosis.from_dict(json.loads(json.dumps(diagnosis.to_dict()))) == diagnosis
        with pytest.raises(InvalidDataError, match="Diagnose it again"):
            Diagnosis.from_dict({"findings": [{}]})

    def test_wrong_input(self):
        with pytest.raises(InvalidParameterError, match="has no loss"):
            CPModel(MODEL.factors).diagnose(COUNTS)
        with pytest.raises(InvalidParameterError, match="shape"):
            MODEL.diagnose(COUNTS[1:])
        with pytest.raises(InvalidDataError, match="counts"):
            MODEL.diagnose(-COUNTS - 1)
        negative = CPModel([-MODEL.factors[0], *MODEL.factors[1:]], loss_function="poisson")
        with pytest.raises(InvalidParameterError, match="negative values"):
            negative.diagnose(COUNTS)

    @pytest.mark.parametrize("name", [*NAMES, "beta(3)"])
    @pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
    def test_models_and_data_of_no_use(self, name, size):
        """Whatever is said of them, it is said in sentences, and at once."""
        model = CPModel([np.full((n, 2), size) for n in (6, 5, 4)], loss_function=name)
        listed = SparseTensor([[0, 0, 0], [1, 1, 1]], [1, 1], (6, 5, 4), "unobserved")
        for X in (np.ones((6, 5, 4)), listed):
            assert not diagnose(model, X).ok

    def test_labels_name_cells_and_rows(self):
        modes = [Mode(n, [f"{n}{k}" for k in range(s)]) for n, s in zip("abc", SHAPE, strict=True)]
        model = CPModel(MODEL.factors, loss_function="poisson", modes=modes)
        X = COUNTS.copy()
        X[3, 4, 5] = 10**6
        assert "(a3, b4, c5)" in diagnose(model, X)["dominant cells"].meaning


class TestReport:
    def test_in_the_page(self, tmp_path):
        diagnosis = Diagnosis((TestResult.FINDING, TestResult.NOTE), ("one", "two"))
        page = write_report(tmp_path / "a.html", MODEL, diagnosis=diagnosis).read_text()
        assert 'id="checks"' in page
        assert "1 warning" in page
        assert "What to do." in page
        assert "wide <b>" not in page
        clean = write_report(tmp_path / "b.html", MODEL, diagnosis=Diagnosis((), ("one",)))
        assert "Nothing wrong was found." in clean.read_text()
        assert 'href="#checks"' not in write_report(tmp_path / "c.html", MODEL).read_text()

    def test_in_the_folder_of_a_run(self, tmp_path):
        diagnosis = diagnose(MODEL, RNG.negative_binomial(2, 2 / (2 + MEAN)))
        history = History([Record(0.1, 1, 10, 2.0, 0.0, "a")])
        run = RunRecord(MODEL, 1.0, history, Status(True, "Converged."), "mm", diagnosis=diagnosis)
        RunFolder(tmp_path).save_model(run)
        assert str(RunFolder(tmp_path).load().diagnosis) == str(diagnosis)


@pytest.mark.usefixtures("elsewhere")
class TestCommandLine:
    def write(self, events):
        with open("events.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["a", "b", "c"])
            rows.writerows(events.tolist())

    def test_a_line_where_something_is_found(self, run):
        rng = np.random.default_rng(0)
        few = rng.integers(0, 6, (300, 3))
        self.write(np.repeat(few, rng.integers(1, 30, 300), axis=0))
        _, out, _ = run("fit", "events.csv", "--modes", "a,b,c", "--rank", 1)
        assert "warning: over-dispersion: counts scatter" in out
        _, out, _ = run("show", "events-smartcpd", "--json")
        found = json.loads(out)["diagnosis"]["findings"]
        assert "over-dispersion" in [f["name"] for f in found]

    def test_silence_where_nothing_is(self, run):
        self.write(np.random.default_rng(0).integers(0, 6, (3000, 3)))
        _, out, _ = run("fit", "events.csv", "--modes", "a,b,c", "--rank", 1)
        assert "warning" not in out
        assert "note:" not in out


def test_the_fit_function_has_all_it_needs():
    result = fit(COUNTS, 3, "poisson", random_state=0)
    assert diagnose(result.model, COUNTS, status=result.status, history=result.history).ok
