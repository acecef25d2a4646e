"""Sparse tensors in folders of parts: the same numbers and the same fits as in memory."""

import json
from itertools import pairwise

import numpy as np
import pytest

import smartcpd
from smartcpd import SmartCPD, SparseTensor, datasets, losses, quality
from smartcpd._app.cli import main
from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.labels import Mode
from smartcpd._data.storage.observed import stacked_rows
from smartcpd._objectives import objective_of
from smartcpd.errors import DataNotFoundError, IncompatibleError, InvalidDataError, SmartCPDError
from smartcpd.partitions import PartitionedTensor, write_pieces, write_tensor

SHAPE, RANK = (400, 60, 50), 3
PART = 40_000
LITTLE = "600kB"
"""Less than a fit in memory would take."""


@pytest.fixture(scope="module")
def counts():
    return datasets.events(SHAPE, RANK, 60_000, random_state=1).data


@pytest.fixture(scope="module")
def folder(counts, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "counts.parts"
    return write_tensor(path, counts, part_bytes=PART)


def _kinds():
    rng = np.random.default_rng(0)
    shape = (30, 7, 5)
    cells = np.unique(rng.integers(0, shape, (300, 3)), axis=0)
    x = rng.integers(1, 9, len(cells))
    w = rng.choice([0.0, 0.5, 1.0, 2.0], len(cells))
    unseen = rng.integers(0, shape, (40, 3))
    return {
        "plain": SparseTensor(cells, x, shape),
        "real": SparseTensor(cells, x / 8, shape),
        "weighted": SparseTensor(cells, x, shape, weights=w),
        "missing": SparseTensor(cells, x, shape, missing=unseen),
        "unobserved": SparseTensor(cells, x, shape, "unobserved"),
        "weighted unobserved": SparseTensor(cells, x, shape, "unobserved", weights=w),
    }


KINDS = _kinds()


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_says_of_itself_what_the_tensor_does(kind, tmp_path):
    X = KINDS[kind]
    P = write_tensor(tmp_path / "x.parts", X, part_bytes=400)
    assert P.n_parts > 3
    for name in ("shape", "nnz", "n_events", "n_cells", "n_missing", "weighted", "dtype"):
        assert getattr(P, name) == getattr(X, name), name
    assert P.n_observed == pytest.approx(X.n_observed)
    assert P.heaviest == X.heaviest
    for name in ("mean", "mean_square", "lowest"):
        assert getattr(P, name)() == pytest.approx(getattr(X, name)()), name
    for ours, theirs in (
        (P.marginals(), X.marginals()),
        (P.row_weights, X.row_weights),
        (P.unobserved_rows(), X.unobserved_rows()),
    ):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_again(kind, tmp_path):
    X = KINDS[kind]
    Y = write_tensor(tmp_path / "x.parts", X, part_bytes=400).load()
    assert (Y.shape, Y.absent, Y.values.dtype) == (X.shape, X.absent, X.values.dtype)
    for a, b in zip((*X.indices, *X.missing), (*Y.indices, *Y.missing), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(X.values, Y.values)
    assert (X.weights is None) == (Y.weights is None)
    if X.weights is not None:
        np.testing.assert_array_equal(X.weights, Y.weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["poisson", "gaussian", "bernoulli-odds"])
def test_sums_over_parts_are_sums_over_the_tensor(kind, loss, tmp_path):
    X = KINDS[kind]
    P = write_tensor(tmp_path / "x.parts", X, part_bytes=400)
    A = np.random.default_rng(1).random((sum(X.shape), 2)) + 0.1
    whole, parts = (objective_of(storage, losses.get(loss)) for storage in (X, P))
    assert parts.estimate(A).loss == pytest.approx(whole.estimate(A).loss, rel=1e-12)
    (_, a), (_, b) = whole.gradient(A), parts.gradient(A)
    np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("kind", ["plain", "weighted", "missing"])
def test_single_cells_are_found_in_their_parts(kind, tmp_path):
    X = KINDS[kind]
    P = write_tensor(tmp_path / "x.parts", X, part_bytes=400)
    index = np.unravel_index(np.arange(X.n_cells), X.shape)
    rows = stacked_rows(X.shape, index)
    for read in ("read_cells", "read_weights"):
        ours, theirs = np.empty(X.n_cells), np.empty(X.n_cells)
        getattr(P, read)(rows, ours)
        getattr(X, read)(rows, theirs)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [(9, 40), (6, 7, 50), (5, 30, 4, 3)])
def test_the_longest_mode_is_divided_wherever_it_is(shape, tmp_path):
    rng = np.random.default_rng(0)
    X = SparseTensor(rng.integers(0, shape, (200, len(shape))), 1, shape)
    P = write_tensor(tmp_path / "x.parts", X, part_bytes=200)
    assert P.n_parts > 2
    A = rng.random((sum(shape), 2)) + 0.1
    whole, parts = (objective_of(storage, losses.get("poisson")) for storage in (X, P))
    (u, a), (v, b) = whole.gradient(A), parts.gradient(A)
    assert v == pytest.approx(u, rel=1e-12)
    np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-14)


def test_pieces_in_any_order_make_one_tensor(tmp_path):
    rng = np.random.default_rng(2)
    cells, x = rng.integers(0, (40, 6, 5), (3000, 3)), rng.integers(-2, 9, 3000)
    pieces = [(cells[k::4], x[k::4].astype(t)) for k, t in enumerate(("i1", "i2", "i8", "f4"))]
    P = write_pieces(tmp_path / "x.parts", pieces, (40, 6, 5), part_bytes=2000)
    Y, X = P.load(), SparseTensor(cells, x, (40, 6, 5))
    assert P.n_parts > 3
    for a, b in zip((*X.indices, X.values), (*Y.indices, Y.values), strict=True):
        np.testing.assert_array_equal(a, b)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.parts"]


def test_a_row_is_never_divided(tmp_path):
    crowded = np.zeros((500, 2), int)
    crowded[:, 1] = np.arange(500)
    X = SparseTensor(np.concatenate([crowded, crowded[:, ::-1]]), 1, (600, 600))
    P = write_tensor(tmp_path / "x.parts", X, part_bytes=100)
    rows = [(part.first, part.last) for part in P.manifest.parts]
    assert rows[0][0] == 0
    assert rows[-1][1] == 599
    assert all(b[0] == a[1] + 1 for a, b in pairwise(rows))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["poisson", "gaussian"])
def test_a_fit_in_parts_is_as_good_as_in_memory(counts, folder, loss):
    settings = {"random_state": 0, "constraint": "nonnegative"}
    memory = SmartCPD(RANK, loss, **settings).fit(counts)
    parts = SmartCPD(RANK, loss, max_memory=LITTLE, **settings).fit(folder)
    again = SmartCPD(RANK, loss, max_memory=LITTLE, n_threads=1, **settings).fit(folder)
    assert parts.solver_ == "partitioned"
    assert parts.loss_ <= memory.loss_ + 1e-3 * abs(memory.loss_)
    assert parts.loss_ == pytest.approx(parts.model_.loss(counts))
    for a, b in zip(parts.factors_, again.factors_, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_observed_cells_alone_are_fitted_in_parts(tmp_path):
    dense, _ = datasets.gaussian((150, 40, 30), 2, random_state=0)
    cells = np.unique(np.random.default_rng(0).integers(0, dense.shape, (36_000, 3)), axis=0)
    X = SparseTensor(cells, dense[tuple(cells.T)], dense.shape, "unobserved")
    P = write_tensor(tmp_path / "x.parts", X, part_bytes=60_000)
    fit = SmartCPD(2, max_memory=LITTLE, random_state=0).fit(P)
    assert fit.solver_ == "partitioned"
    assert fit.loss_ <= 1.001 * SmartCPD(2, random_state=0).fit(X).loss_


def test_small_data_is_taken_to_memory_and_fitted_as_ever(counts, folder):
    ours = SmartCPD(RANK, "poisson", random_state=0).fit(folder)
    theirs = SmartCPD(RANK, "poisson", random_state=0).fit(counts)
    assert (ours.solver_, ours.loss_) == (theirs.solver_, theirs.loss_)


def test_quality_is_measured_part_by_part(counts, folder):
    model = smartcpd.decompose(counts, RANK, "poisson", random_state=0)
    parts = folder.within(LITTLE)
    assert isinstance(parts, PartitionedTensor)
    ours, theirs = quality.measure(model, parts), quality.measure(model, counts)
    assert ours.deviance_explained == pytest.approx(theirs.deviance_explained)
    assert ours.nonzeros == theirs.nonzeros
    assert smartcpd.choose_loss(parts).reason == smartcpd.choose_loss(counts).reason


def test_needs_are_told_and_refused_beforehand(folder):
    text = smartcpd.explain(folder, RANK, "poisson", max_memory=LITTLE)
    assert "solver partitioned" in text
    assert "6 parts" in text
    assert "of memory of 600 kB allowed" in text
    with pytest.raises(SmartCPDError, match=r"needs about .* max_memory is 200 kB"):
        SmartCPD(RANK, "poisson", max_memory="200kB").fit(folder)
    with pytest.raises(IncompatibleError, match="solver 'smd' does not"):
        SmartCPD(RANK, "poisson", solver="smd", max_memory=LITTLE).fit(folder)
    with pytest.raises(IncompatibleError, match="solver 'smd' does not"):
        SmartCPD(RANK, "poisson", init="smd", max_memory=LITTLE).fit(folder)
    with pytest.raises(IncompatibleError, match="absent='zero'"):
        SmartCPD(RANK, "poisson", absent="unobserved").fit(folder)
    with pytest.raises(InvalidDataError, match=r"part-00000.parquet holds .*needs 0 or 1"):
        SmartCPD(RANK, "bernoulli-odds", max_memory=LITTLE).fit(folder)


def test_labels_and_notes_come_back(tmp_path):
    X = KINDS["plain"]
    modes = tuple(
        Mode(name, [f"{name}{i}" for i in range(n)]) for name, n in zip("abc", X.shape, strict=True)
    )
    smartcpd.write(tmp_path / "x.parts", LabelledTensor(X, modes, ("Something was left out.",)))
    found = smartcpd.read(tmp_path / "x.parts")
    assert found.modes == modes
    assert found.notes == ("Something was left out.",)
    model = smartcpd.decompose(found, 2, "poisson", random_state=0, max_epochs=3)
    assert model.modes == modes


def test_a_table_goes_to_parts_without_being_a_tensor_before(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "who": rng.zipf(1.5, 5000) % 300,
            "what": rng.choice(["tea", "rye", "oat", None], 5000),
            "amount": rng.integers(1, 9, 5000),
        }
    )
    for chosen in ({}, {"top": {"who": 20}}, {"value": "amount", "agg": "mean"}):
        wishes = chosen | {"allow_lost_rows": True}
        whole = smartcpd.from_table(table, ["who", "what"], **wishes)
        parts = smartcpd.from_table(
            table, ["who", "what"], out=tmp_path / "t.parts", max_memory="100MB", **wishes
        )
        assert parts.modes == whole.modes
        assert parts.notes == whole.notes
        X, Y = whole.tensor, parts.tensor.load()
        for a, b in zip((*X.indices, X.values), (*Y.indices, Y.values), strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(SmartCPDError, match=r"must end with '\.parts'"):
        smartcpd.from_table(table, ["who", "what"], out=tmp_path / "t.npz")


def test_the_command_line_takes_folders(folder, tmp_path, capsys):
    def program(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, arguments)))
        return ended.value.code

    copy, run = tmp_path / "copy.parts", tmp_path / "run"
    assert program("convert", folder.path, copy) == 0
    assert PartitionedTensor.open(copy).nnz == folder.nnz
    assert program("check", copy) == 0
    small = ["--max-memory", LITTLE, "--rank", RANK, "--out", run]
    # The copy has one part, too large for so little memory.
    assert program("fit", copy, *small) != 0
    assert "needs about" in capsys.readouterr().err
    assert program("fit", folder.path, *small) == 0
    assert "read from disk in 6 parts" in capsys.readouterr().err
    assert (run / "report.html").exists()
    assert json.loads((run / "model.json").read_text())


def test_a_folder_too_large_for_this_machine_is_checked(folder, monkeypatch, capsys):
    monkeypatch.setattr("smartcpd._common.memory.of_machine", lambda: 1_200_000)
    with pytest.raises(SystemExit) as ended:
        main(["check", str(folder.path), "--rank", str(RANK)])
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "40,898 nonzeros" in told
    assert "A fit has it read from disk in 6 parts" in told
    assert "Suggested loss: poisson" in told


def test_damaged_folders_are_named(folder, tmp_path, counts):
    with pytest.raises(DataNotFoundError, match=r"no manifest\.json"):
        smartcpd.read(_emptied(tmp_path / "a.parts"))
    P = write_tensor(tmp_path / "b.parts", counts, part_bytes=PART)
    manifest = P.path / "manifest.json"
    good = manifest.read_text()
    manifest.write_text(good.replace('"version": 1', '"version": 9'))
    with pytest.raises(InvalidDataError, match="version 9"):
        smartcpd.read(P.path)
    manifest.write_text(good[:200])
    with pytest.raises(InvalidDataError, match="damaged"):
        smartcpd.read(P.path)
    manifest.write_text(good)
    (P.path / "part-00001.parquet").write_bytes(b"nothing")
    with pytest.raises(InvalidDataError, match=r"part-00001\.parquet cannot be read"):
        SmartCPD(RANK, "poisson", max_memory=LITTLE).fit(PartitionedTensor.open(P.path))
    (P.path / "part-00001.parquet").unlink()
    with pytest.raises(DataNotFoundError, match=r"part-00001\.parquet is missing"):
        smartcpd.read(P.path)


def _emptied(path):
    path.mkdir()
    return path


def test_what_cannot_be_written_leaves_the_old_folder(tmp_path):
    path = tmp_path / "x.parts"
    write_tensor(path, KINDS["plain"])

    def broken():
        yield np.zeros((1, 3), int), 1
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="gone"):
        write_pieces(path, broken(), (30, 7, 5))
    with pytest.raises(InvalidDataError, match="no entries"):
        write_pieces(path, [], (30, 7, 5))
    with pytest.raises(InvalidDataError, match="out of bounds"):
        write_pieces(path, [(np.full((1, 3), 9), 1)], (30, 7, 5))
    assert PartitionedTensor.open(path).nnz == KINDS["plain"].nnz
    assert [p.name for p in tmp_path.iterdir()] == ["x.parts"]
