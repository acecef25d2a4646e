"""Pages: the code they show runs, and prints what they show."""

import os
import warnings
from pathlib import Path

import pages
import pytest

SLOW = {
    "docs/coming-from.md",
    "docs/concepts/rank.md",
    "docs/concepts/stability.md",
    "docs/howto/exposure.md",
    "docs/howto/known-parts.md",
    "docs/howto/larger-than-memory.md",
    "docs/howto/long-runs.md",
    "docs/howto/networks.md",
    "docs/howto/new-data.md",
    "docs/howto/penalties.md",
    "docs/howto/own-loss.md",
    "docs/howto/replication.md",
    "docs/howto/sparse.md",
    "docs/howto/xarray.md",
    "docs/index.md",
}
"""Run where the site is built (`make docs`), not in the suite: they take long, or read data of the
packages that the gallery needs."""
NAMES = [str(page.relative_to(pages.ROOT)) for page in pages.pages()]


@pytest.fixture
def hires(elsewhere):
    """The table of the start page, which other pages go on with."""
    table = next(b for b in pages.blocks(pages.ROOT / "docs/index.md") if b.language == "python")
    pytest.importorskip("pandas")
    pages.run_python(table, {}, Path("index.md"))


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_a_page_runs_and_prints_what_is_shown(name, hires, run, recwarn):
    if name in SLOW and not os.environ.get("SMARTCPD_ALL_PAGES"):
        pytest.skip("runs where the site is built")
    page, names = pages.ROOT / name, {"__name__": "__main__"}
    warnings.simplefilter("ignore")  # what a fit warns of is not what a page is about
    for block in pages.blocks(page):
        if block.reason:
            continue
        if block.language == "python":
            pages.run_python(block, names, page)
        elif block.language == "pycon":
            wrong = pages.run_session(block, names, page)
            assert not wrong, "".join(wrong)
        else:
            for (program, *arguments), shown in pages.commands(block):
                assert program == "smartcpd", f"{name}: {program} is not ours to run"
                code, printed, said = run(*arguments)
                assert code == 0 or "no-such" in arguments[-1], said
                assert not shown.strip() or pages.looks_like(shown, printed), printed


def test_the_readme_is_short_and_says_how_to_begin():
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for words in ("make demo", "make test", "make docs", "pip install"):
        assert words in text


def test_figures_of_the_readme_stand_in_the_results_that_they_name():
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    results = (pages.ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    figures = {
        "dense_optimum": "20",
        "against_pyttb": "453",
        "selected_rank": "10",
        "dense_on_disk": "0.952",
    }
    for case, figure in figures.items():
        bullet = next(b for b in text.split("\n- ") if f"#{case})" in b)
        assert figure in bullet
        rows = [line for line in results if line.startswith(f"| [{case}](#{case})")]
        assert any(f"| {figure} |" in row for row in rows), f"{case} does not say {figure}"


def test_links_of_the_readme_lead_to_files():
    import re

    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (pages.ROOT / link).exists(), link
