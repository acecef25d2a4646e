"""What `smartcpd fit` does once: check the data, read the cells, save the model."""

import json
import sys

import numpy as np
import pytest

from smartcpd import CPModel, LabelledTensor, Mode, SparseTensor, write
from smartcpd._app.run_folder import RunFolder
from smartcpd._data.storage import Dense
from smartcpd._data.tiled import TiledArray
from smartcpd._fitting import fit as fitting
from smartcpd._fitting import persistence, shares
from smartcpd._fitting.fit import fit
from smartcpd._fitting.mean_loss import mean_loss
from smartcpd._fitting.shares import readable
from smartcpd._inference import examination, excerpt
from smartcpd._inference.diagnosis import diagnose
from smartcpd._inference.dispersion import estimate
from smartcpd._inference.examination import Examination
from smartcpd._inference.excerpt import Excerpt
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits
from smartcpd._problem.checkpoints import identity
from smartcpd.quality import measure
from smartcpd.quality.reading import Reading

RNG = np.random.default_rng(0)
FACTORS = [RNG.random((size, 2)) + 0.1 for size in (9, 8, 7)]
MEAN = CPModel(FACTORS).full()
LABELS = tuple(Mode(f"m{n}", [f"{n}-{i}" for i in range(len(A))]) for n, A in enumerate(FACTORS))


class Counter:
    """Counts the calls of functions, by whatever name modules have imported them."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch
        self.calls = {}

    def watch(self, name, *places):
        self.calls[name] = 0
        for owner, attribute in places:
            if isinstance(owner, type):
                owner = next(base for base in owner.__mro__ if attribute in vars(base))
            found = vars(owner)[attribute]
            inner = getattr(found, "__func__", found)

            def counting(*args, _inner=inner, **kwargs):
                self.calls[name] += 1
                return _inner(*args, **kwargs)

            new = counting if inner is found else type(found)(counting)
            holders = [owner]
            if not isinstance(owner, type):
                modules = [m for n, m in list(sys.modules.items()) if n.startswith("smartcpd")]
                holders = [m for m in modules if vars(m).get(attribute) is found]
            for holder in holders:
                self.monkeypatch.setattr(holder, attribute, new)


@pytest.fixture(autouse=True)
def ranks_are_not_compared(monkeypatch):
    """The check of the rank refits copies of the data, which is not what is counted here."""
    unknown = RankVerdict(2, Suits.UNKNOWN)
    monkeypatch.setattr(examination, "checked_rank", lambda *args, **kwargs: unknown)


@pytest.fixture
def calls(monkeypatch):
    import smartcpd._app.cli.show
    import smartcpd.report.page  # noqa: F401 - imported by name before anything is counted

    counter = Counter(monkeypatch)
    counter.watch("folders checked", (RunFolder, "check"))
    counter.watch("data checked", (Dense, "check"), (SparseTensor, "check"))
    counter.watch("arrays opened", (Dense, "of"))
    counter.watch("digests", (identity, "data_digest"))
    counter.watch("passes over the cells", (Reading, "batches"))
    counter.watch("mean losses", (sys.modules["smartcpd._fitting.mean_loss"], "mean_loss"))
    counter.watch("made readable", (shares, "readable"))
    counter.watch("models saved", (persistence, "save"))
    counter.watch("excerpts", (TiledArray, "gathered"))
    return counter.calls


def counts_table():
    rows = np.repeat(np.argwhere(MEAN), RNG.poisson(MEAN).ravel(), axis=0)
    text = "a,b,c\n" + "".join(f"a{i},b{j},c{k}\n" for i, j, k in rows)
    with open("X.csv", "w") as file:
        file.write(text)
    return "X.csv", "--modes", "a,b,c"


def yes_or_no_table():
    rows = np.argwhere(RNG.random(MEAN.shape) < 0.3)
    with open("X.csv", "w") as file:
        file.write("a,b,c\n" + "".join(f"a{i},b{j},c{k}\n" for i, j, k in rows))
    return "X.csv", "--modes", "a,b,c"


def measurements():
    np.save("X.npy", MEAN + 0.1 * RNG.standard_normal(MEAN.shape))
    return "X.npy", "--loss", "gaussian"


def labelled_counts():
    write("X.npz", LabelledTensor(RNG.poisson(MEAN).astype(float), LABELS))
    return ("X.npz",)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("data", [counts_table, yes_or_no_table, measurements, labelled_counts])
@pytest.mark.parametrize("more", [(), ("--checkpoint-every", 0)], ids=["checkpoints", "none"])
def test_everything_is_done_once(data, more, run, calls):
    code, out, err = run("fit", *data(), "-r", 2, "--json", "-q", *more)
    assert code == 0, err
    dense = data in (measurements, labelled_counts)
    assert calls == {
        "folders checked": 1,
        "data checked": 1,
        "arrays opened": int(dense),
        "digests": 1,
        "passes over the cells": 1,
        "mean losses": 0,
        "made readable": 1,
        "models saved": 1,
        "excerpts": 0,
    }
    assert json.loads(out)["quality"]["mean_loss"] == json.loads(out)["mean_loss"]


@pytest.mark.usefixtures("elsewhere")
def test_an_excerpt_is_drawn_once(run, calls, monkeypatch):
    X = np.ones((40, 40, 40)) + 0.1 * RNG.standard_normal((40, 40, 40))
    np.save("X.npy", X)
    drawn = Excerpt.of

    def watched(storage):
        before = calls["excerpts"]
        found = drawn(storage)
        excerpts.append(calls["excerpts"] - before)
        return found

    excerpts = []
    monkeypatch.setattr(Excerpt, "of", watched)
    code, _, err = run("fit", "X.npy", "-r", 1, "-q", "--max-memory", "900kB")
    assert code == 0, err
    assert sum(excerpts) == 1
    assert calls["passes over the cells"] == calls["models saved"] == 1
    assert calls["mean losses"] == 1
    notes = RunFolder("X-smartcpd").load().notes
    assert any("measured on 40x40x40 cells" in note for note in notes)


def drawn_like(loss):
    if loss == "poisson":
        return RNG.poisson(3 * MEAN)
    if loss == "bernoulli-odds":
        return (RNG.random(MEAN.shape) < MEAN / (1 + MEAN)).astype(float)
    return MEAN + 0.1 * RNG.standard_normal(MEAN.shape)


class TestFigures:
    """Read together, quality and diagnosis are what they are when each is asked for alone."""

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("loss", ["poisson", "bernoulli-odds", "gaussian"])
    def test_as_if_each_were_asked_for_alone(self, loss, sparse):
        X = drawn_like(loss)
        X[4, 4, 4] = 1 if loss == "bernoulli-odds" else 60  # worth a finding
        data = SparseTensor(np.argwhere(X), X[X != 0], X.shape) if sparse else X
        found = fit(LabelledTensor(data, LABELS), 2, loss, random_state=0, max_epochs=30)
        examined = Examination.of(found)
        quality, diagnosis = examined.figures()
        same(quality.to_dict(), measure(examined.shown.model, data).to_dict())
        order = examined.shown.order
        factors = [A[:, order] for A in found.model.factors]
        ordered = CPModel(factors, found.model.weights[order], loss, LABELS)
        alone = diagnose(ordered, data, status=found.status, history=found.history)
        assert diagnosis.checked == alone.checked
        assert diagnosis.names == alone.names
        for one, other in zip(diagnosis, alone, strict=True):
            if "calibrated" not in one.name:  # where rounding decides in which bin a cell is
                same(one.figures, other.figures)
        assert examined.dispersion() == pytest.approx(estimate(examined.shown.model, data))

    def test_the_loss_and_its_error_are_those_of_the_fit(self):
        X = drawn_like("poisson")
        found = fit(X, 2, "poisson", random_state=0)
        assert found.mean_loss == pytest.approx(mean_loss(X, found.model))
        error = 0.125
        quality, _ = Examination.of(fitting.replace(found, loss_error=error)).figures()
        assert quality.mean_loss_error == error


def same(first, second):
    """Whether two results are the same but for rounding."""
    assert type(first) is type(second)
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            same(first[key], second[key])
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            same(one, other)
    elif isinstance(first, float):
        assert first == pytest.approx(second, rel=1e-6)
    else:
        assert first == second


class TestExcerpts:
    def test_cells_are_named_as_in_the_whole(self, tmp_path, monkeypatch):
        monkeypatch.setattr(excerpt, "CELLS", 1000)
        X = np.ones((30, 30, 30)) + 0.01 * RNG.standard_normal((30, 30, 30))
        np.save(tmp_path / "X.npy", X)
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r+")
        parameters = {"random_state": 0, "max_memory": "400kB"}
        rows = Excerpt.of(fit(mapped, 1, **parameters).problem.storage).rows
        assert [len(r) for r in rows] == [10, 10, 10]
        wild = tuple(int(r[-1]) for r in rows)
        mapped[wild] = 9.0
        found = fit(mapped, 1, **parameters)
        quality, diagnosis = Examination.of(found).figures()
        assert quality.hot_cells[0].index == wild
        assert quality.hot_cells[0].observed == 9.0
        assert measure(found.model, found.problem.storage).hot_cells[0].index == wild
        worst = {(entry.mode, entry.index) for entry in quality.hot_slices}
        assert set(enumerate(wild)) <= worst
        finding = diagnosis["dominant cells"]
        assert finding.figures["cells"] == [list(wild)]
        assert str(wild) in finding.meaning

    def test_what_is_in_memory_is_whole(self):
        model = CPModel(FACTORS, loss_function="gaussian")
        whole = Excerpt.of(Dense.of(MEAN))
        assert whole.rows_of(model) is model
        assert whole.in_whole((1, 2, 3)) == (1, 2, 3)
        assert whole.remark == ""


class TestReadable:
    def test_a_readable_model_stays_as_it_is(self):
        once = readable(CPModel(FACTORS, [2.0, 3.0]))
        again = readable(once.model)
        assert again.order.tolist() == once.on_its_own().order.tolist() == [0, 1]
        np.testing.assert_allclose(again.shares, once.shares)

    def test_signs_that_cancel_are_none(self):
        A, B, C = FACTORS
        shown = readable(CPModel([-A, -B, C]))
        assert not shown.signed
        expected = readable(CPModel(FACTORS))
        for one, other in zip(shown.model.factors, expected.model.factors, strict=True):
            np.testing.assert_allclose(one, other)
        np.testing.assert_allclose(shown.shares, expected.shares)

    def test_signs_that_do_not_are_some(self):
        A, B, C = FACTORS
        assert readable(CPModel([-A, B, C])).signed


def test_an_interruption_leaves_the_model_and_the_next_step_its_figures(tmp_path):
    """What is found out about a model is added to its header, as if all had been saved at once."""
    found = fit(drawn_like("poisson"), 2, "poisson", random_state=0)
    examined = Examination.of(found)
    model = examined.shown.model
    persistence.save(model, tmp_path / "a", {"quality": None})
    arrays = (tmp_path / "a.npz").read_bytes()
    persistence.tell(tmp_path / "a", {"quality": 1})
    assert (tmp_path / "a.npz").read_bytes() == arrays
    persistence.save(model, tmp_path / "b", {"quality": 1})
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    assert persistence.read_run(tmp_path / "a") == {"quality": 1}
    assert all(map(np.array_equal, CPModel.load(tmp_path / "a").factors, model.factors))


def test_labels_are_put_on_every_model_of_a_fit():
    X = LabelledTensor(drawn_like("poisson"), LABELS)
    found = fit(X, 2, "poisson", random_state=0, n_init=2, consensus=True)
    assert found.model.modes == found.consensus.model.modes == LABELS
    assert isinstance(found.problem.storage, Dense)
    assert examination.readable(found.model).model.modes == LABELS
