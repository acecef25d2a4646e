"""Text files of sparse tensors: what is written is read back, and what is wrong is named."""

import gzip
import math
import struct
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smartcpd._data.tns import read_tns, write_tns
from smartcpd.errors import InvalidDataError, InvalidParameterError

INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
MANY_EXAMPLES = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tns")


@pytest.fixture
def read(tmp_path):
    """Reads a text as if it were a file."""

    def read_text(content, name="x.tns", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_tns(path, **options)

    return read_text


def small_blocks(n_bytes=40):
    return mock.patch("smartcpd._data.tns.reading.BLOCK_BYTES", n_bytes)


def bits(x):
    return struct.pack("<d", x)


def assert_same(one, other):
    for a, b in zip([*one[0], one[1]], [*other[0], other[1]], strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    assert one[2] == other[2]


def assert_entries(found, indices, values, shape):
    for a, b in zip(found[0], indices, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found[1], values)
    assert found[2] == shape


@st.composite
def tensors(draw, dtypes):
    shape = tuple(
        draw(st.lists(st.sampled_from([1, 3, 300, 70_000, 2**40]), min_size=1, max_size=5))
    )
    n = draw(st.integers(0, 30))
    indices = [draw(hnp.arrays(np.int64, n, elements=st.integers(0, d - 1))) for d in shape]
    return indices, draw(hnp.arrays(draw(st.sampled_from(dtypes)), n)), shape


class TestRoundTrip:
    @MANY_EXAMPLES
    @given(tensors(INTEGERS), st.sampled_from([".tns", ".tns.gz"]))
    def test_integers(self, folder, tensor, suffix):
        indices, values, shape = tensor
        write_tns(folder / f"a{suffix}", indices, values, shape)
        found = read_tns(folder / f"a{suffix}")
        assert_entries(found, indices, values, shape)
        assert found[1].dtype.kind in "iu"

    @MANY_EXAMPLES
    @given(tensors(FLOATS))
    def test_floats_with_every_bit_and_nan(self, folder, tensor):
        indices, values, shape = tensor
        write_tns(folder / "b.tns", indices, values, shape)
        found = read_tns(folder / "b.tns")
        assert_entries(found, indices, values, shape)
        if values.size:
            assert found[1].dtype == np.float64
            signed = ~np.isnan(values)
            np.testing.assert_array_equal(*(np.signbit(x[signed]) for x in (found[1], values)))

    @MANY_EXAMPLES
    @given(tensors([*INTEGERS, *FLOATS]), st.integers(1, 60), st.integers(1, 7))
    def test_the_size_of_blocks_does_not_matter(self, folder, tensor, n_bytes, n_rows):
        write_tns(folder / "whole.tns", *tensor)
        with mock.patch("smartcpd._data.tns.writing.ROWS_AT_ONCE", n_rows):
            write_tns(folder / "parts.tns", *tensor)
        assert (folder / "parts.tns").read_bytes() == (folder / "whole.tns").read_bytes()
        with small_blocks(n_bytes):
            reads_parts = read_tns(folder / "whole.tns")
        assert_same(reads_parts, read_tns(folder / "whole.tns"))

    @pytest.mark.parametrize(
        ("values", "dtype"), [([-(2**63), 2**63 - 1], "int64"), ([0, 2**64 - 1], "uint64")]
    )
    def test_extremes(self, tmp_path, values, dtype):
        write_tns(tmp_path / "x.tns", [np.arange(2)], np.array(values, dtype), (2,))
        found = read_tns(tmp_path / "x.tns")[1]
        assert found.tolist() == values
        assert found.dtype == dtype

    def test_the_text(self, tmp_path):
        indices = [np.array([0, 9], np.uint8), np.array([99, 0])]
        write_tns(tmp_path / "x.tns", indices, [-5, 12], (10, 100))
        assert (tmp_path / "x.tns").read_text() == "# shape: 10 100\n1 100 -5\n10 1 12\n"
        write_tns(tmp_path / "x.tns", indices, [0.1, 3.0], (10, 100))
        assert (tmp_path / "x.tns").read_text() == "# shape: 10 100\n1 100 0.1\n10 1 3.0\n"

    def test_gzip_gives_equal_files_for_equal_entries(self, tmp_path):
        for name in ("one.tns.gz", "two.tns.gz"):
            write_tns(tmp_path / name, [np.arange(3)], np.arange(3), (3,))
        one, two = (tmp_path / name for name in ("one.tns.gz", "two.tns.gz"))
        assert one.read_bytes() == two.read_bytes()
        assert gzip.decompress(one.read_bytes()).startswith(b"# shape: 3\n1 0\n")

    def test_a_failed_write_leaves_the_old_file(self, tmp_path):
        write_tns(tmp_path / "x.tns", [np.arange(3)], np.arange(3), (3,))
        before = (tmp_path / "x.tns").read_bytes()
        broken = mock.patch(
            "smartcpd._data.tns.writing._formatted", side_effect=OSError("disk full")
        )
        with broken, pytest.raises(OSError, match="disk full"):
            write_tns(tmp_path / "x.tns", [np.arange(4)], np.arange(4), (4,))
        assert (tmp_path / "x.tns").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["x.tns"]


class TestNumbers:
    @MANY_EXAMPLES
    @given(
        st.lists(
            st.from_regex(
                r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?",
                fullmatch=True,
            ),
            min_size=1,
        )
    )
    def test_any_decimal_is_what_python_reads(self, folder, tokens):
        self.check(folder / "decimals.tns", [*tokens, "0.5"])

    @MANY_EXAMPLES
    @given(st.lists(st.floats(), min_size=1), st.integers(15, 21))
    def test_any_float_is_what_python_reads(self, folder, numbers, n_digits):
        tokens = [f"{x:.{n_digits - 1}e}" for x in numbers]
        self.check(folder / "floats.tns", [*map(repr, numbers), *tokens])

    def test_many_random_numbers(self, folder):
        rng = np.random.default_rng(0)
        numbers = rng.integers(0, 2**63, 20_000).view(np.float64).tolist()
        numbers += rng.standard_normal(20_000).tolist()
        self.check(folder / "many.tns", [f"{x:.16e}" for x in numbers])

    def test_hard_cases(self, folder):
        halves = [str(2**53 + k) + ".0" for k in range(9)]
        halves += [f"{2**60 + 128 + k}e0" for k in range(-2, 3)]
        edges = ["1.7976931348623157e308", "1.7976931348623159e308", "2e308", "1e-400", "-1e400"]
        edges += ["2.2250738585072014e-308", "2.2250738585072011e-308", "4.9e-324", "2e-324"]
        powers = [f"{digit}e{k}" for digit in (1, 7, "9007199254740993") for k in range(-345, 312)]
        words = ["inf", "-Inf", "NaN", "-nan", "Infinity", "-0", "-0.0", "+4", ".5", "5.", "1E+5"]
        long = [
            "0." + "0" * 30 + "123456789012345678",
            "1" * 400,
            "0" * 50 + "1.5",
            "1e99999999999",
        ]
        self.check(folder / "hard.tns", [*halves, *edges, *powers, *words, *long])

    @staticmethod
    def check(path, tokens):
        path.write_text("".join(f"1 {token}\n" for token in tokens))
        for found, token in zip(read_tns(path)[1].astype(float).tolist(), tokens, strict=True):
            expected = float(token)
            assert bits(found) == bits(expected) or (math.isnan(found) and math.isnan(expected))

    @pytest.mark.parametrize(
        ("tokens", "dtype"),
        [
            ("3 255", "uint8"),
            ("3 256", "uint16"),
            ("+4 0007", "uint8"),
            ("-1 5", "int64"),
            ("9223372036854775807 -1", "int64"),
            ("18446744073709551615 1", "uint64"),
            ("18446744073709551615 -1", "float64"),
            ("18446744073709551616 1", "float64"),
            ("1 2.0", "float64"),
            ("1 1e2", "float64"),
            ("1 nan", "float64"),
        ],
    )
    def test_types_of_values(self, read, tokens, dtype):
        for n_bytes in (1, 1000):
            with small_blocks(n_bytes):
                values = read("".join(f"1 {token}\n" for token in tokens.split()))[1]
            assert values.dtype == dtype
            assert values.tolist() == pytest.approx([float(t) for t in tokens.split()], nan_ok=True)

    def test_types_of_indices(self, read):
        indices, _, shape = read("256 257 70000 9223372036854775807 1\n")
        assert [str(index.dtype) for index in indices] == ["uint8", "uint16", "uint32", "int64"]
        assert shape == (256, 257, 70000, 2**63 - 1)


class TestFormat:
    EXPECTED = ([0, 2], [1, 3]), [5, 7], (3, 4)

    @pytest.mark.parametrize(
        "content",
        [
            "1 2 5\n3 4 7\n",
            "1 2 5\n3 4 7",
            "1 2 5\r\n3 4 7\r\n",
            "\n\n  1\t2   5 \n \t \n\t3 4\t\t7\t\n\n",
            "1,2,5\n3, 4, 7\n",
            "# a\n1 2 5\n% b 1 2\n  # c\n3 4 7\n#",
            "1 2 5 # five\n3 4 7 % seven, 8\n",
            "\ufeff1 2 5\n3 4 7\n",
            "# shape (3, 4)\n1 2 5\n3 4 7\n",
            "001 02 5\n3 4 +7\n",
        ],
    )
    def test_spellings(self, read, content):
        assert_entries(read(content), *self.EXPECTED)
        with small_blocks(1):
            assert_entries(read(content), *self.EXPECTED)

    @pytest.mark.parametrize(
        "header",
        [
            "# shape: 9 8\n",
            "\n# by hand\n#shape:\t9  8 \r\n",
            "\ufeff# shape: 9 8\n",
            "2\n9 8\n",
            "2 # the order\n\n9 8\r\n",
            "# made by hand\n2\n9 8 2\n",
            "2\n9 8\n2\n",
            "\ufeff2\n9 8\n2\n",
            "sptensor\n2\n9 8\n2\n",
            "SPTENSOR\r\n2 \r\n9 8 \r\n2\r\n",
            "# extended FROSTT format\n2 2\n9 8\n",
        ],
    )
    def test_headers(self, read, header):
        indices, values, _ = self.EXPECTED
        assert_entries(read(header + "1 2 5\n# more\n3 4 7\n"), indices, values, (9, 8))

    @pytest.mark.parametrize("header", ["1\n9\n", "1\n9\n2\n", "1\n9 2\n", "1 2\n9\n"])
    def test_headers_of_a_vector(self, read, header):
        assert_entries(read(header + "3 2.5\n4 1\n"), [[2, 3]], [2.5, 1], (9,))

    @pytest.mark.parametrize(
        ("content", "shape"),
        [("3 4\n2 2\n1 7\n", (3,)), ("2 2 2\n9 8 2\n1 1 5\n", (9, 8)), ("2 1\n9 8\n", (9,))],
    )
    def test_what_may_be_an_entry_is_one(self, read, content, shape):
        indices, _, found = read(content)
        assert found == shape
        assert indices[0].size == content.count("\n")

    @pytest.mark.parametrize("content", ["# shape: 3 4\n", "sptensor\n2\n3 4\n0\n", "2\n3 4"])
    def test_a_shape_without_entries(self, read, content):
        indices, values, shape = read(content)
        assert [index.size for index in indices] == [0, 0]
        assert values.size == 0
        assert shape == (3, 4)

    def test_pyttb(self, tmp_path):
        ttb = pytest.importorskip("pyttb")
        subs, vals = np.array([[0, 1, 2], [3, 0, 1]]), np.array([[0.1], [2.0]])
        ttb.export_data(ttb.sptensor(subs, vals, (5, 6, 7)), str(tmp_path / "x.tns"))
        assert_entries(read_tns(tmp_path / "x.tns"), subs.T, vals[:, 0], (5, 6, 7))

    def test_gzip_is_known_by_its_content(self, read):
        parts = gzip.compress(b"1 2 5\n") + gzip.compress(b"3 4 7\n")
        assert_entries(read(parts, "x.tns"), *self.EXPECTED)

    def test_loadtxt_agrees(self, tmp_path):
        rng = np.random.default_rng(1)
        table = np.column_stack([rng.integers(1, 400, (5000, 3)), rng.standard_normal(5000)])
        np.savetxt(tmp_path / "x.tns", table, fmt=["%d", "%d", "%d", "%.18e"])
        table = np.loadtxt(tmp_path / "x.tns")
        shape = tuple(table[:, :3].max(0).astype(int).tolist())
        assert_entries(read_tns(tmp_path / "x.tns"), table[:, :3].T - 1, table[:, 3], shape)

    def test_threads_agree(self, read):
        lines = [f"{k % 300 + 1} {k + 1} {'nan' if k % 97 == 0 else k / 8}\n" for k in range(3000)]
        with small_blocks(500):
            assert_same(read("".join(lines), n_threads=1), read("".join(lines), n_threads=2))


class TestRefusals:
    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("0 1 2", "index '0' in column 1: indices count from 1"),
            ("1 00 2", "index '00' in column 2: indices count from 1"),
            ("1 -1 2", "'-1' in column 2 is not an index"),
            ("1.5 1 2", "'1.5' in column 1 is not an index"),
            ("1.0 1 2", "'1.0' in column 1 is not an index"),
            ("x 1 2", "'x' in column 1 is not an index"),
            ("1 9223372036854775808 2", "is larger than int64 can hold, 9223372036854775807"),
            ("1 99999999999999999999999 2", "is larger than int64 can hold"),
            ("1 2", "it has 2 columns, but the first entry has 3: indices and a value"),
            ("1", "it has 1 column, but the first entry has 3"),
            ("1 2 # 3", "it has 2 columns"),
            ("1 2 #3", "it has 2 columns"),
            ("1 2 3 4", "it has 4 columns"),
            ("1 2 x", "the value 'x' is not a number"),
            ("1 2 1_0", "the value '1_0' is not a number"),
            ("1 2 1e", "the value '1e' is not a number"),
            ("1 2 .", "the value '.' is not a number"),
            ("1 2 1.2.3", "the value '1.2.3' is not a number"),
            ("1 2 --1", "the value '--1' is not a number"),
            ("1 2 0x10", "the value '0x10' is not a number"),
            ("1 2 5%", "the value '5%' is not a number"),
            ("1 2 1.#INF", "the value '1.#INF' is not a number"),
            ("1 2 \u00b2", "is not a number"),
        ],
    )
    def test_a_bad_line(self, read, line, reason):
        content = f"# comment\n1 1 1\n\n2 2 2.5\n{line}\n0 0 worse\n"
        for n_bytes in (1, 20, 10_000):
            with small_blocks(n_bytes), pytest.raises(InvalidDataError) as error:
                read(content)
            assert f"x.tns, line 5: {line!r}: " in str(error.value)
            assert reason in str(error.value)

    def test_beyond_the_header(self, read):
        for header, number in (("# shape: 3 4\n", 3), ("sptensor\n2\n3 4\n2\n", 6)):
            with pytest.raises(InvalidDataError, match=f"line {number}: '1 5 1': .*dimension, 4"):
                read(f"{header}3 4 1\n1 5 1\n")
            with pytest.raises(InvalidDataError, match="2 columns, but the header asks for 3"):
                read(f"{header}1 1\n")

    @pytest.mark.parametrize("n_entries", [1, 3])
    def test_another_number_of_entries(self, read, n_entries):
        with pytest.raises(InvalidDataError, match=f"has 2 entries, .* tells of {n_entries}"):
            read(f"2\n3 4 {n_entries}\n1 1 1\n2 2 2\n")

    @pytest.mark.parametrize(
        "content",
        ["ktensor\n2\n3 4\n", "sptensor\n", "sptensor\n2\n3 x\n", "7", "0\n1\n", "3\n1 2\n"],
    )
    def test_a_bad_header(self, read, content):
        with pytest.raises(InvalidDataError, match=r"x\.tns, line \d.*nor a header"):
            read(content)

    @pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n", " \r\n% here"])
    def test_an_empty_file(self, read, content):
        with pytest.raises(InvalidDataError, match=r"x\.tns is empty"):
            read(content)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"gone\.tns"):
            read_tns(tmp_path / "gone.tns")

    def test_damaged_gzip(self, read):
        whole = gzip.compress(b"1 2 3\n" * 1000)
        for damaged in (whole[:-9], whole[:30], whole[:-6] + b"xxxxxx", whole + b"more"):
            with pytest.raises(InvalidDataError, match=r"x\.tns\.gz cannot be decompressed"):
                read(damaged, "x.tns.gz")

    def test_a_long_line_is_cut(self, read):
        with pytest.raises(InvalidDataError) as error:
            read("1 1\n" + "1 " * 1000)
        assert "it has 1000 columns" in str(error.value)
        assert len(str(error.value)) < 400
        with pytest.raises(InvalidDataError, match="larger than int64 can hold") as error:
            read("1 1\n" + "9" * 5000 + " 1")
        assert len(str(error.value)) < 500

    @pytest.mark.parametrize(
        ("indices", "values", "shape", "reason"),
        [
            ([[0, 3]], [1, 2], (3,), "Index 3 of mode 0 is outside 0 ... 2"),
            ([[0, 1], [0, -1]], [1, 2], (3, 3), "Index -1 of mode 1"),
            ([[0.0, 1.0]], [1, 2], (3,), "dtype float64: use integers"),
            ([[0, 1]], [1, 2, 3], (3,), "vectors of one length"),
            ([[0, 1]], [1, 2], (3, 3), "1 index arrays for the shape (3, 3)"),
            ([], [], (), "0 index arrays"),
            ([[0, 1]], [1, 2j], (3,), "dtype complex128"),
            ([[0, 1]], ["a", "b"], (3,), "dtype <U1"),
        ],
    )
    def test_entries_that_cannot_be_written(self, tmp_path, indices, values, shape, reason):
        with pytest.raises(InvalidDataError) as error:
            write_tns(tmp_path / "x.tns", [np.array(index) for index in indices], values, shape)
        assert reason in str(error.value)
        assert not list(tmp_path.iterdir())

    def test_a_missing_directory(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="Create it first"):
            write_tns(tmp_path / "gone" / "x.tns", [np.arange(1)], [1], (1,))
