"""The model: its values, its equivalent forms, its files and its conversions."""

import json
import math
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from smartcpd import losses
from smartcpd._common.model_cells import slabs
from smartcpd._fitting.model import CPModel
from smartcpd.errors import (
    IncompatibleError,
    InvalidDataError,
    InvalidParameterError,
    MissingExtraError,
    ModelNotFoundError,
)

quick = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def random_model(shape=(4, 5, 6), rank=3, seed=0, **kwargs):
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((size, rank)) for size in shape]
    return CPModel(factors, rng.standard_normal(rank), **kwargs)


@st.composite
def models(draw, dtype=np.float64, max_order=4):
    """Signed models of any small shape, with zeros and a wide range of scales."""
    order, rank = draw(st.integers(1, max_order)), draw(st.integers(1, 4))
    entries = st.floats(-1e3, 1e3, width=32).map(lambda v: v if abs(v) > 1e-6 else 0.0)
    factors = [
        draw(arrays(dtype, (draw(st.integers(1, 5)), rank), elements=entries)) for _ in range(order)
    ]
    return CPModel(factors, draw(arrays(dtype, rank, elements=entries)))


def einsum_full(model):
    """The definition, written independently."""
    letters = "abcdefgh"[: model.order]
    terms = ",".join(f"{letter}r" for letter in letters)
    return np.einsum(f"r,{terms}->{letters}", model.weights, *model.factors)


def assert_same_tensor(one, two):
    # Rounding is relative to the terms of the sum, which can cancel.
    size = einsum_full(CPModel([np.abs(A) for A in one.factors], np.abs(one.weights)))
    assert np.all(np.abs(one.full() - two.full()) <= 1e-12 * size)


class TestConstruction:
    def test_neither_aliases_nor_changes_the_arrays_given(self):
        factors, weights = [np.ones((2, 1)), np.ones((3, 1))], np.ones(1)
        model = CPModel(factors, weights)
        factors[0][:], weights[:] = 7.0, 7.0
        factors.append(np.ones((4, 1)))
        assert model.full().tolist() == [[1.0] * 3] * 2
        assert factors[0].flags.writeable

    def test_arrays_are_read_only_and_fields_frozen(self):
        model = random_model()
        with pytest.raises(ValueError, match="read-only"):
            model.factors[0][0, 0] = 1.0
        with pytest.raises(AttributeError):
            model.weights = np.ones(3)

    def test_properties_and_repr(self):
        model = random_model((100, 100, 100), 10, loss_function="poisson")
        assert (model.shape, model.rank, model.order) == ((100, 100, 100), 10, 3)
        assert repr(model) == "CPModel(shape=100x100x100, rank=10, loss=poisson)"
        assert repr(random_model()) == "CPModel(shape=4x5x6, rank=3, loss=None)"

    def test_keeps_float32_only_if_all_factors_have_it(self):
        single = np.ones((2, 1), np.float32)
        assert CPModel([single, single]).full().dtype == np.float32
        assert CPModel([single, np.ones((2, 1))]).full().dtype == np.float64
        assert CPModel([np.ones((2, 1), int), single]).full().dtype == np.float64

    @pytest.mark.parametrize(
        ("factors", "weights", "message"),
        [
            ([], None, "at least one factor"),
            ([np.ones(3)], None, "factor of mode 0 .* 2 dimensions; got shape \\(3,\\)"),
            ([np.ones((2, 2)), np.ones((3, 1))], None, "2x2, 3x1"),
            ([np.ones((2, 0)), np.ones((3, 0))], None, "2x0, 3x0"),
            ([np.ones((0, 2)), np.ones((3, 2))], None, "0x2, 3x2"),
            ([np.ones((2, 2)), np.full((3, 2), np.nan)], None, "factor of mode 1 holds NaN"),
            ([np.ones((2, 2), complex)], None, "real numbers"),
            ([np.ones((2, 2))], np.ones(3), "rank 2 needs 2 weights; got 3"),
            ([np.ones((2, 2))], np.ones((2, 1)), "weights .* 1 dimension;"),
        ],
    )
    def test_refuses_what_is_not_a_model(self, factors, weights, message):
        with pytest.raises(InvalidParameterError, match=message):
            CPModel(factors, weights)

    def test_refuses_an_unknown_loss(self):
        with pytest.raises(InvalidParameterError, match="poisson"):
            random_model(loss_function="poison")


class TestValues:
    @quick
    @given(models())
    def test_full_is_the_definition(self, model):
        size = einsum_full(CPModel([np.abs(A) for A in model.factors], np.abs(model.weights)))
        assert np.all(np.abs(model.full() - einsum_full(model)) <= 1e-12 * size)

    @quick
    @given(models(max_order=3), st.integers(1, 12))
    def test_slabs_cover_every_cell_once_at_any_size(self, model, cells):
        flat = np.full(math.prod(model.shape), np.nan)
        for where, m in slabs(model.factors, model.weights, cells):
            assert m.size <= cells
            assert np.isnan(flat[where]).all()
            flat[where] = m
        np.testing.assert_allclose(flat, model.full().ravel(), rtol=1e-9, atol=1e-3)

    def test_values_of_a_table_and_of_a_tuple_are_those_of_full(self):
        model = random_model()
        full = model.full()
        cells = np.stack([np.random.default_rng(1).integers(0, s, 50) for s in model.shape], axis=1)
        np.testing.assert_allclose(model.values(cells), full[tuple(cells.T)])
        np.testing.assert_allclose(model.values(cells.tolist()), full[tuple(cells.T)])
        np.testing.assert_allclose(model.values(tuple(cells.T)), full[tuple(cells.T)])

    def test_tuples_broadcast(self):
        model = random_model()
        i, j = np.arange(4)[:, None], np.arange(5)
        np.testing.assert_allclose(model.values((i, j, 2)), model.full()[:, :, 2])
        assert model.values((1, 2, 3)) == pytest.approx(model.full()[1, 2, 3])

    def test_more_cells_than_one_piece(self, monkeypatch):
        monkeypatch.setattr("smartcpd._common.model_cells.SLAB_CELLS", 10)
        model = random_model()
        everywhere = np.indices(model.shape).reshape(3, -1).T
        np.testing.assert_allclose(model.values(everywhere), model.full().ravel())

    def test_no_cells(self):
        assert random_model().values(np.empty((0, 3), int)).shape == (0,)
        assert random_model().values(([], [], [])).shape == (0,)

    @pytest.mark.parametrize(
        ("indices", "message"),
        [
            ([[0, 5, 0]], "Index 5 of mode 1 .* size 5, so 0 to 4"),
            ([[0, 0, -1]], "Index -1 of mode 2 .* size 6"),
            ([[0.0, 1.0, 1.0]], "mode 0 must be integers; got float64"),
            ([[True, True, False]], "must be integers; got bool"),
            ([0, 1, 2], r"shape \(3,\)"),
            ([[0, 1]], r"3 columns.*shape \(1, 2\)"),
            (([0], [1]), "each of the 3 modes; got 2"),
            (([0, 1], [1, 2, 3], [0]), r"do not fit together: shapes \(2,\), \(3,\), \(1,\)"),
        ],
    )
    def test_bad_indices_are_named(self, indices, message):
        with pytest.raises(InvalidParameterError, match=message):
            random_model().values(indices)

    def test_mean_and_full_go_through_the_link(self):
        odds = CPModel([np.full((2, 1), 2.0), np.ones((3, 1))], loss_function="bernoulli-odds")
        np.testing.assert_allclose(odds.values([[0, 0]]), [2.0])
        np.testing.assert_allclose(odds.mean([[0, 0]]), [2 / 3])
        np.testing.assert_allclose(odds.full(), np.full((2, 3), 2 / 3))
        assert CPModel(odds.factors).mean([[0, 0]]).tolist() == [2.0]

    def test_the_mean_is_the_mean_of_simulated_data(self):
        # Three standard errors of a negative-binomial sample mean, its variance r m (1 + m).
        model = CPModel([np.full((1, 1), 0.7)] * 2, loss_function="negative-binomial(3)")
        drawn = model.loss_function.simulate(np.full(40_000, 0.49), np.random.default_rng(0))
        error = np.sqrt(3 * 0.49 * 1.49 / drawn.size)
        assert abs(drawn.mean() - model.mean([[0, 0]])[0]) < 3 * error

    def test_full_names_the_bytes_it_refuses(self):
        with pytest.raises(InvalidParameterError, match=r"needs 960 bytes .* max_bytes=959"):
            random_model().full(max_bytes=959)
        assert random_model().full(max_bytes=960).nbytes == 960
        with pytest.raises(InvalidParameterError, match=r"8\.0 GB"):
            CPModel([np.ones((1000, 1))] * 3).full()


class TestEquivalentForms:
    @quick
    @given(models(), st.sampled_from([1, 2]))
    def test_normalize_keeps_the_tensor_and_makes_unit_columns(self, model, norm):
        normal = model.normalize(norm)
        assert_same_tensor(model, normal)
        for A, U in zip(model.factors, normal.factors, strict=True):
            np.testing.assert_allclose(
                np.linalg.norm(U, ord=norm, axis=0), (A != 0).any(axis=0), rtol=1e-12
            )
        dead = [(A == 0).all(axis=0) for A in model.factors]
        assert not normal.weights[np.any(dead, axis=0)].any()

    def test_normalize_survives_scales_whose_squares_do_not(self):
        model = CPModel([np.full((2, 1), 1e-200), np.full((2, 1), 1e200)]).normalize()
        np.testing.assert_allclose(model.full(), 1.0)

    def test_normalize_refuses_other_norms(self):
        with pytest.raises(InvalidParameterError, match="norm must be 1 or 2; got 3"):
            random_model().normalize(3)

    @quick
    @given(models())
    def test_sort_keeps_the_tensor_and_orders_magnitudes(self, model):
        ordered = model.sort()
        assert_same_tensor(model, ordered)
        assert (np.diff(np.abs(ordered.weights)) <= 0).all()

    @quick
    @given(models(), st.data())
    def test_absorb_and_distribute_keep_the_tensor_and_leave_ones(self, model, data):
        mode = data.draw(st.integers(0, model.order - 1))
        for other in (model.absorb(mode), model.distribute()):
            assert_same_tensor(model, other)
            assert (other.weights == 1).all()
        for n in set(range(model.order)) - {mode}:
            assert (model.absorb(mode).factors[n] == model.factors[n]).all()

    def test_distribute_spreads_evenly(self):
        spread = CPModel([np.ones((2, 1))] * 3, [8.0]).distribute()
        for A in spread.factors:
            np.testing.assert_allclose(A, 2.0)

    @pytest.mark.parametrize("mode", [-1, 3])
    def test_absorb_refuses_a_mode_that_is_not_there(self, mode):
        with pytest.raises(InvalidParameterError, match="0 to 2"):
            random_model().absorb(mode)

    @pytest.mark.parametrize(
        "change", [CPModel.normalize, CPModel.sort, CPModel.absorb, CPModel.distribute]
    )
    def test_the_loss_and_the_precision_are_kept(self, change):
        single = [A.astype(np.float32) for A in random_model().factors]
        changed = change(CPModel(single, loss_function="huber(2)"))
        assert changed.loss_function == losses.get("huber(2)")
        assert changed.weights.dtype == changed.factors[0].dtype == np.float32


class TestAlign:
    @quick
    @given(st.permutations(range(4)), st.integers(0, 2**32 - 1))
    def test_undoes_permutation_signs_and_scale(self, permutation, seed):
        rng = np.random.default_rng(seed)
        truth = CPModel([rng.standard_normal((8, 4)) for _ in range(3)], rng.uniform(1, 2, 4))
        signs = rng.choice([-1.0, 1.0], (3, 4))
        signs[2] = signs[0] * signs[1]
        factors = [(A * s)[:, permutation] for A, s in zip(truth.factors, signs, strict=True)]
        shuffled = CPModel(factors, truth.weights[permutation])
        aligned = shuffled.align(truth)
        for A, B in zip(aligned.factors, truth.factors, strict=True):
            np.testing.assert_array_equal(A, B)
        np.testing.assert_array_equal(aligned.weights, truth.weights)

    @quick
    @given(models(), st.integers(0, 2**32 - 1))
    def test_never_changes_the_tensor(self, model, seed):
        assert_same_tensor(model, model.align(random_model(model.shape, model.rank, seed)))

    def test_a_sign_held_by_the_weight_moves_with_its_column(self):
        truth = random_model()
        flipped = CPModel([-truth.factors[0], *truth.factors[1:]], -truth.weights)
        aligned = flipped.align(truth)
        np.testing.assert_array_equal(aligned.factors[0], truth.factors[0])
        np.testing.assert_array_equal(aligned.weights, truth.weights)

    def test_nonnegative_factors_stay_nonnegative(self):
        one, two = (
            CPModel([np.random.default_rng(seed).random((6, 4)) for _ in range(3)])
            for seed in (1, 2)
        )
        assert all((A >= 0).all() for A in one.align(two).factors)

    def test_refuses_models_that_do_not_compare(self):
        for other in (random_model((4, 5, 7)), random_model(rank=2)):
            with pytest.raises(IncompatibleError, match="one shape and rank"):
                random_model().align(other)


class TestFiles:
    @quick
    @given(models(), st.sampled_from([None, "poisson", "beta(0.5)", losses.get("huber(2)")]))
    def test_round_trip_is_bit_for_bit(self, tmp_path, model, loss):
        model = CPModel(model.factors, model.weights, loss)
        model.save(tmp_path / "model")
        back = CPModel.load(tmp_path / "model")
        assert back.weights.tobytes() == model.weights.tobytes()
        assert [A.tobytes() for A in back.factors] == [A.tobytes() for A in model.factors]
        assert back.shape == model.shape
        assert back.loss_function == model.loss_function

    def test_parameters_of_the_loss_keep_every_digit(self, tmp_path):
        exact = losses.get("beta(0.5)").__class__(1 / 3)
        random_model(loss_function=exact).save(tmp_path / "m")
        assert CPModel.load(tmp_path / "m").loss_function.beta == 1 / 3

    def test_float32_stays(self, tmp_path):
        CPModel([np.ones((2, 1), np.float32)] * 2).save(tmp_path / "m")
        assert CPModel.load(tmp_path / "m").factors[0].dtype == np.float32

    @pytest.mark.parametrize("name", ["m", "m.npz", "run.v2"])
    def test_the_suffix_is_optional(self, tmp_path, name):
        written = random_model(loss_function="beta(0.5)").save(tmp_path / name)
        stem = name.removesuffix(".npz")
        assert written == tmp_path / f"{stem}.npz"
        assert {p.name for p in tmp_path.iterdir()} == {f"{stem}.npz", f"{stem}.json"}
        assert CPModel.load(tmp_path / stem).rank == CPModel.load(f"{written}").rank == 3

    def test_the_folder_of_a_run_is_taken_too(self, tmp_path):
        (tmp_path / "run").mkdir()
        random_model(seed=1).save(tmp_path / "run" / "model")
        assert CPModel.load(tmp_path / "run").rank == 3
        random_model(seed=2).save(tmp_path / "run")  # beside the folder, and of its name
        np.testing.assert_array_equal(
            CPModel.load(tmp_path / "run").weights, random_model(seed=2).weights
        )

    def test_an_empty_folder_is_no_model(self, tmp_path):
        with pytest.raises(ModelNotFoundError, match=r"model.npz does not exist"):
            CPModel.load(tmp_path)

    def test_the_json_can_be_read_by_people(self, tmp_path):
        random_model(loss_function="beta(0.5)").save(tmp_path / "m")
        header = json.loads((tmp_path / "m.json").read_text())
        assert (header["loss"], header["shape"], header["rank"]) == ("beta(0.5)", [4, 5, 6], 3)
        assert header["format_version"] == 1
        assert header["smartcpd_version"]

    def test_a_failed_save_leaves_the_old_model(self, tmp_path, monkeypatch):
        random_model(seed=1).save(tmp_path / "m")

        def no_space(*_):
            raise OSError("no space left on device")

        monkeypatch.setattr("smartcpd._fitting.persistence.os.fsync", no_space)
        with pytest.raises(OSError, match="no space"):
            random_model(seed=2).save(tmp_path / "m")
        assert {p.name for p in tmp_path.iterdir()} == {"m.npz", "m.json"}
        np.testing.assert_array_equal(
            CPModel.load(tmp_path / "m").weights, random_model(seed=1).weights
        )

    def test_a_crash_between_the_two_files_is_noticed(self, tmp_path):
        random_model(seed=1).save(tmp_path / "old")
        random_model(seed=2).save(tmp_path / "new")
        (tmp_path / "new.npz").replace(tmp_path / "old.npz")
        with pytest.raises(InvalidDataError, match=r"not the file that old\.json describes"):
            CPModel.load(tmp_path / "old")

    @pytest.mark.parametrize("suffix", ["npz", "json"])
    def test_a_missing_file_is_named(self, tmp_path, suffix):
        random_model().save(tmp_path / "m")
        (tmp_path / f"m.{suffix}").unlink()
        with pytest.raises(FileNotFoundError, match=rf"m\.{suffix} does not exist"):
            CPModel.load(tmp_path / "m")

    def test_a_missing_directory_is_named(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="nowhere is not a directory"):
            random_model().save(tmp_path / "nowhere" / "m")

    @pytest.mark.parametrize("kept", [0, 10, 200])
    def test_truncated_arrays(self, tmp_path, kept):
        npz = random_model().save(tmp_path / "m")
        npz.write_bytes(npz.read_bytes()[:kept])
        with pytest.raises(InvalidDataError, match="truncated"):
            CPModel.load(npz)

    @pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"name": "other"}', "\xff"])
    def test_a_json_that_is_not_ours(self, tmp_path, text):
        random_model().save(tmp_path / "m")
        (tmp_path / "m.json").write_text(text, encoding="latin-1")
        with pytest.raises(InvalidDataError, match="does not describe a smartcpd model"):
            CPModel.load(tmp_path / "m")

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"format_version": 99}, InvalidDataError, "format version 99"),
            ({"shape": [4, 5, 6, 7]}, InvalidDataError, "does not hold the arrays"),
            ({"loss": "bogus"}, InvalidParameterError, "does not have.*loss=my_loss"),
        ],
    )
    def test_an_edited_json(self, tmp_path, changes, error, message):
        random_model(loss_function="poisson").save(tmp_path / "m")
        header = json.loads((tmp_path / "m.json").read_text())
        (tmp_path / "m.json").write_text(json.dumps(header | changes))
        with pytest.raises(error, match=message):
            CPModel.load(tmp_path / "m")

    def test_a_json_with_a_part_missing(self, tmp_path):
        random_model().save(tmp_path / "m")
        header = json.loads((tmp_path / "m.json").read_text())
        del header["shape"]
        (tmp_path / "m.json").write_text(json.dumps(header))
        with pytest.raises(InvalidDataError, match="lacks shape"):
            CPModel.load(tmp_path / "m")

    @pytest.mark.parametrize("name", ["squares", "poisson"])
    def test_a_custom_loss_must_be_given_again(self, tmp_path, name):
        mine = losses.custom(lambda x, m: (x - m) ** 2.0, lambda x, m: 2.0 * (m - x), name=name)
        random_model(loss_function=mine).save(tmp_path / "m")
        with pytest.raises(InvalidParameterError, match=f"custom loss '{name}'.*loss=my_loss"):
            CPModel.load(tmp_path / "m")
        assert CPModel.load(tmp_path / "m", loss=mine).loss_function is mine

    def test_pickles_are_never_loaded(self, tmp_path):
        import hashlib

        random_model().save(tmp_path / "m")
        np.savez(tmp_path / "m.npz", weights=np.array([print], object))
        header = json.loads((tmp_path / "m.json").read_text())
        header["sha256"] = hashlib.sha256((tmp_path / "m.npz").read_bytes()).hexdigest()
        (tmp_path / "m.json").write_text(json.dumps(header))
        with pytest.raises(InvalidDataError, match="allow_pickle=False"):
            CPModel.load(tmp_path / "m")


class TestConverters:
    def test_tensorly_sees_the_same_tensor(self):
        tl = pytest.importorskip("tensorly")
        model = random_model(loss_function="gaussian")
        cp = model.to_tensorly()
        np.testing.assert_allclose(tl.to_numpy(tl.cp_to_tensor(cp)), model.full())
        back = CPModel.from_tensorly(cp, "gaussian")
        np.testing.assert_array_equal(back.weights, model.weights)
        for A, B in zip(back.factors, model.factors, strict=True):
            np.testing.assert_array_equal(A, B)
        assert back.loss_function == model.loss_function

    def test_tensorly_may_change_what_it_gets(self):
        pytest.importorskip("tensorly")
        model = random_model()
        model.to_tensorly().factors[0][:] = 0.0
        assert model.factors[0].all()

    def test_tensorly_pairs_without_weights(self):
        pytest.importorskip("tensorly")
        model = CPModel.from_tensorly((None, [np.ones((2, 3)), np.ones((4, 3))]))
        assert model.weights.tolist() == [1.0] * 3
        with pytest.raises(InvalidParameterError, match="got int"):
            CPModel.from_tensorly(5)

    def test_pyttb_sees_the_same_tensor(self):
        ttb = pytest.importorskip("pyttb")
        single = CPModel([np.ones((2, 1), np.float32)] * 2)
        assert isinstance(single.to_pyttb(), ttb.ktensor)
        model = random_model()
        ktensor = model.to_pyttb()
        np.testing.assert_allclose(ktensor.full().data, model.full())
        back = CPModel.from_pyttb(ktensor)
        np.testing.assert_array_equal(back.weights, model.weights)
        for A, B in zip(back.factors, model.factors, strict=True):
            np.testing.assert_array_equal(A, B)
        with pytest.raises(InvalidParameterError, match="got list"):
            CPModel.from_pyttb([])

    @pytest.mark.parametrize("package", ["tensorly", "pyttb"])
    def test_a_missing_package_names_its_extra(self, monkeypatch, package):
        monkeypatch.setitem(sys.modules, package, None)
        for convert in (f"to_{package}", f"from_{package}"):
            with pytest.raises(MissingExtraError, match=rf"smartcpd\[{package}\]"):
                getattr(CPModel, convert)(random_model())
