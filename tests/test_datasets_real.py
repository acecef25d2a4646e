"""Real data: what the builders make of the raw tables, and what they say without them."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from smartcpd import datasets
from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.labels import Kind
from smartcpd.datasets import chicago, files, uci
from smartcpd.datasets import flower_visits as flowers
from smartcpd.errors import (
    DataNotFoundError,
    InvalidDataError,
    InvalidParameterError,
    SmartCPDError,
)

folder = Path(os.environ.get("SMARTCPD_DATA", "/nowhere"))


def needs(name):
    reason = f"set SMARTCPD_DATA to a folder with {name}"
    return pytest.mark.skipif(not (folder / name).is_file(), reason=reason)


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SMARTCPD_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """A test that would reach for the network fails, as a machine without one does."""

    def refused(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr("pooch.retrieve", refused)
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache")
    monkeypatch.setattr(flowers, "urlopen", refused)


class TestRealTables:
    @needs("chicago_crime_2022.csv.gz")
    def test_chicago_2022(self):
        data = datasets.chicago_crime("2022")
        assert isinstance(data, LabelledTensor)
        assert data.shape == (334, 24, 77, 31)
        assert data.tensor.nnz == 202_313
        assert int(data.tensor.values.sum()) == 215_551
        assert [mode.name for mode in data.modes] == ["day", "hour", "community area", "type"]
        assert [mode.kind for mode in data.modes[:2]] == [Kind.TIME, Kind.CYCLE]
        assert "THEFT" in data.modes[3].text()
        assert "2022" in data.source
        assert not data.simulated

    @needs("collegemsg.txt.gz")
    def test_uci_chat(self):
        data = datasets.uci_chat()
        assert data.shape == (400, 400, 188)
        assert data.tensor.nnz == 18_385
        assert set(np.unique(data.tensor.values)) == {1}
        assert data.modes[2].text()[0].startswith("2004-04")

    @needs("pollinators_2011_2014.csv.gz")
    def test_pollinators_of_2014(self):
        data = datasets.pollinators(fetch=False)
        assert data.shape == (463, 116, 105)
        assert data.tensor.nnz == 5_983
        assert "2011 to 2014" in data.source
        assert not data.simulated

    @needs("collegemsg.txt.gz")
    def test_uci_chat_of_fewer_and_of_too_many(self):
        assert datasets.uci_chat(50).shape[:2] == (50, 50)
        with pytest.raises(InvalidParameterError, match=r"n_senders=5000.* fewer"):
            datasets.uci_chat(5000)


class TestBuilders:
    def test_chicago_of_frostt(self, own_folder):
        lines = "1 1 1 1 3\n6186 24 77 32 1\n2 5 7 9 2\n"
        with gzip.open(own_folder / "chicago-crime-comm.tns.gz", "wt") as file:
            file.write(lines)
        data = datasets.chicago_crime()
        assert data.shape == chicago.SHAPE
        assert int(data.tensor.values.sum()) == 6
        assert "FROSTT" in data.source

    def test_uci_without_a_line_of_names(self, own_folder):
        # 3 sent most and 1 next, both twice or more; 2 is left out.
        (own_folder / "CollegeMsg.txt").write_text(
            "3 1 1000\n3 1 1500\n3 2 2000\n1 3 90000\n1 3 200000\n2 1 300000\n"
        )
        data = datasets.uci_chat(2)
        assert data.shape == (2, 2, 3)
        found = {tuple(int(i) for i in cell) for cell in zip(*data.tensor.indices, strict=True)}
        assert found == {(1, 0, 0), (0, 1, 1), (0, 1, 2)}
        assert data.modes[0].text() == ["1", "3"]

    def test_pollinators(self, own_folder):
        (own_folder / "SA02601.csv").write_text(
            "YEAR,MEADOW,WATCH_DATE,PLTSP_NAME,VISSP_NAME\n"
            "2011,LM,2011-07-02,Gilia capitata,Bombus mixtus\n"
            "2011,LM,2011-07-02 10:15:00,Gilia capitata,Bombus mixtus\n"
            "2012,LB,7/3/2012,Rudbeckia,Apis mellifera\n"
            "2012,CNE,2012-07-03,Rudbeckia,Apis mellifera\n"  # another meadow
            "2012,LB,2012-07-03,Rudbeckia,\n"  # no visitor
            "2017,LB,2017-07-03,Rudbeckia,Apis mellifera\n"  # another year
        )
        data = datasets.pollinators()
        assert data.shape == (2, 2, 2)
        assert sorted(data.tensor.values) == [1, 2]
        assert [mode.name for mode in data.modes] == ["pollinator", "plant", "day"]
        assert data.modes[2].text() == ["2011-07-02", "2012-07-03"]

    def test_pollinators_with_counts(self, own_folder):
        with gzip.open(own_folder / "pollinators_2011_2014.csv.gz", "wt") as file:
            file.write(
                "date,plant,visitor,guild,count\n"
                "2011-07-12,AMEL,BOMB,social bee,2\n"
                "2011-07-12,AMEL,BOMB,social bee,3\n"
                "2011-07-13,GILI,APIS,social bee,1\n"
            )
        data = datasets.pollinators()
        assert data.shape == (2, 2, 2)
        assert sorted(data.tensor.values) == [1, 5]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("A,B\n1,2\n", "has no column MEADOW"),
            ("MEADOW,PLTSP_NAME,VISSP_NAME\n", "has no column DATE"),
            ("MEADOW,DATE,PLTSP_NAME,VISSP_NAME\nLM,2020-01-01,a,b\n", "no visits of 2011"),
        ],
    )
    def test_another_table(self, own_folder, text, message):
        (own_folder / "SA02601.csv").write_text(text)
        with pytest.raises(InvalidDataError, match=message):
            datasets.pollinators()


class TestWithoutData:
    @pytest.mark.parametrize(
        ("build", "name"),
        [
            (datasets.pollinators, "SA02601.csv"),
            (datasets.uci_chat, "CollegeMsg.txt.gz"),
            (datasets.chicago_crime, "chicago-crime-comm.tns.gz"),
        ],
    )
    @pytest.mark.parametrize("fetch", [True, False])
    def test_says_what_to_put_where(self, own_folder, build, name, fetch):
        with pytest.raises(DataNotFoundError) as error:
            build(fetch=fetch)
        message = str(error.value)
        assert name in message
        assert str(own_folder) in message
        assert "http" in message

    def test_without_a_folder(self, monkeypatch):
        monkeypatch.delenv("SMARTCPD_DATA", raising=False)
        with pytest.raises(DataNotFoundError, match="set SMARTCPD_DATA to that folder"):
            datasets.uci_chat(fetch=False)

    def test_which_chicago(self):
        with pytest.raises(InvalidParameterError, match="'auto', 'frostt' or '2022'; got '2001'"):
            datasets.chicago_crime("2001")

    def test_errors_are_ours(self):
        assert issubclass(DataNotFoundError, SmartCPDError)
        assert issubclass(DataNotFoundError, FileNotFoundError)


class TestFetching:
    def test_keeps_the_name_and_the_sum(self, own_folder, monkeypatch):
        asked = {}

        def retrieve(url, known_hash, fname, path, progressbar):
            asked.update(url=url, known_hash=known_hash, fname=fname)
            return str(own_folder / fname)

        monkeypatch.setattr("pooch.retrieve", retrieve)
        file = files.DataFile("It", ("it.txt",), "https://there/it.txt", "https://there", "ab" * 32)
        assert file.path() == own_folder / "it.txt"
        assert asked == {
            "url": "https://there/it.txt",
            "known_hash": "sha256:" + "ab" * 32,
            "fname": "it.txt",
        }

    def test_finds_the_address_first(self, own_folder, monkeypatch):
        asked = []
        monkeypatch.setattr(
            "pooch.retrieve", lambda url, **kw: asked.append(url) or str(own_folder / "x")
        )
        file = files.DataFile("It", ("it.txt",), "https://a", "", None, lambda url: url + "/1")
        file.path()
        assert asked == ["https://a/1"]

    def test_is_found_again_without_a_network(self, own_folder):
        (own_folder / "cache").mkdir()
        kept = own_folder / "cache" / "it.txt"
        kept.write_text("here")
        assert files.DataFile("It", ("it.txt",), "https://a", "").path(fetch=False) == kept

    def test_addresses(self):
        for file in (chicago.FROSTT, uci.COLLEGE_MSG, flowers.SA026):
            assert file.url.startswith("https://")


class TestStandIn:
    def test_is_marked(self):
        data = datasets.stand_in("it", ("a", "b", "c"), (60, 50, 40), 2000, random_state=0)
        assert data.simulated
        assert data.source.startswith("SIMULATED")
        assert data.shape == (60, 50, 40)
        assert abs(data.tensor.nnz - 2000) < 100
        assert "SIMULATED" in repr(data)

    def test_binary(self):
        data = datasets.stand_in("it", "abc", (30, 30, 30), 900, binary=True, random_state=0)
        assert set(np.unique(data.tensor.values)) == {1}
