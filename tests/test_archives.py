"""Archives of arrays: what is written is read, and an interrupt stays one."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from smartcpd._common.archives import archived, write_archive

ARRAYS = {"first": np.arange(5.0), "second": np.ones((2, 3), int)}


@pytest.mark.parametrize("compressed", [False, True])
def test_what_is_written_is_read(tmp_path, compressed):
    path = tmp_path / "x.npz"
    write_archive(path, ARRAYS, compressed)
    with np.load(path) as found:
        assert found.files == list(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)


def test_an_interrupt_with_an_array_open_is_raised_as_it_came(monkeypatch):
    opened = zipfile.ZipFile.open

    def interrupted(*args, **kwargs):
        opened(*args, **kwargs)  # the handle is open, and nobody has it yet
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        archived(ARRAYS)


def test_other_errors_are_left_alone(monkeypatch):
    def refused(*args, **kwargs):
        raise ValueError("no")

    monkeypatch.setattr(zipfile.ZipFile, "open", refused)
    with pytest.raises(ValueError, match="no"):
        archived(ARRAYS)
