"""The reference of the site: every public name is on one of its pages."""

import re
import sys

import pages

sys.path.insert(0, str(pages.ROOT / "docs" / "_site"))
from piece_pages import KINDS, piece_page
from public_names import public_names

import smartcpd


def names_on_pages():
    written = sorted((pages.ROOT / "docs" / "reference" / "api").glob("*.md"))
    texts = [page.read_text(encoding="utf-8") for page in written]
    found = set(re.findall(r"smartcpd(?:\.\w+)+", "\n".join([*texts, *map(piece_page, KINDS)])))
    if ".. automodule:: smartcpd.errors\n   :members:" in "".join(texts):
        found |= {f"smartcpd.errors.{name}" for name in smartcpd.errors.__all__}
    return found


def test_every_public_name_is_in_the_reference():
    assert not public_names() - names_on_pages()


def test_public_names_are_those_of_all_public_lists():
    found = public_names()
    assert {f"smartcpd.{name}" for name in ("SmartCPD", "select", "from_table")} <= found
    assert {"smartcpd.losses.custom", "smartcpd.losses.poisson.Poisson"} <= found
    assert not any("._" in name for name in found - {"smartcpd.__version__"})
