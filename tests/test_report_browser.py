"""The page in a real browser: Debian's chromium, driven by Playwright."""

import csv
import io
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
from reports import EVIL, full_report

from smartcpd import CPModel, Mode
from smartcpd.report import write_report

playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed, so no browser can be driven"
)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.slow,  # a browser takes seconds to start
    pytest.mark.skipif(
        CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)"
    ),
]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return full_report(tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def opened(browser, address):
    """Open the page; whatever goes wrong on it, or leaves it, fails the test."""
    troubles = []
    contexts = []

    def open_page(width=1400, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        # A picture that the page makes itself has an address as well, which leads nowhere else.
        own = (address, "blob:null/")
        page.on("request", lambda r: None if r.url.startswith(own) else troubles.append(r.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def no_sideways_scrolling(page):
    return page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_it_renders(opened):
    page = opened()
    assert page.title() == "day × hour × place <i> × size"
    assert page.locator("article.card").count() == 3
    assert page.locator("article .curve path.line").count() == 3
    assert page.locator("article .strip rect.cell").count() == 3 * 24
    for heading in ("Components", "Checks", "How well it fits", "Repeat this run"):
        assert page.get_by_role("heading", name=heading, exact=True).is_visible()
    box = page.locator("article .bars .fill").first.bounding_box()
    assert box["width"] > 20
    assert no_sideways_scrolling(page)


def test_labels_are_shown_as_text(opened):
    page = opened()
    page.keyboard.press("/")
    page.keyboard.type("<script>")
    assert page.locator("#choices button").first.inner_text().startswith(EVIL)
    assert page.locator("#answer caption").inner_text().startswith(EVIL)
    assert page.locator("article .name", has_text=EVIL).first.is_visible()
    assert page.locator("main script, main img").count() == 0


def test_findings_and_stability_are_shown(opened):
    page = opened()
    page.get_by_role("link", name="Checks").click()
    panels = page.locator(".finding")
    assert panels.count() == 2
    assert f"In {EVIL}, so wide." in panels.first.inner_text()
    warning, note = (p.evaluate("e => getComputedStyle(e).borderLeftColor") for p in panels.all())
    assert warning != note
    assert page.locator("article .unsure").inner_text() == (
        "Found in 2 of 5 starts, stability 0.30."
    )


def test_the_search_finds_a_label_and_shows_it_in_the_cards(opened):
    page = opened()
    box = page.locator("#search")
    box.fill("PLACE 17")
    assert page.locator("#search-status").inner_text() == "1 label found"
    rows = page.locator("#answer tbody tr")
    assert rows.count() == 3
    assert "of 30" in rows.first.inner_text()
    assert page.locator("article li.found-row", has_text="place 17").count() == 3
    rows.first.locator("a").click()
    assert page.locator("#answer").is_hidden()
    assert page.evaluate("document.activeElement.tagName") == "ARTICLE"

    box.fill("2024-01-15")
    assert page.locator("article .marker:not([hidden])").count() == 3
    assert page.locator("article li.found-row").count() == 0
    box.fill("nowhere at all")
    assert "No label contains" in page.locator("#search-status").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#found").is_hidden()


def test_the_rest_of_the_labels_comes_on_demand(opened):
    page = opened()
    block = page.locator("article .mode", has=page.locator(".bars")).first
    assert block.locator("li").count() == 8
    block.get_by_role("button", name="more").click()
    assert block.locator("li").count() == 30
    block.get_by_role("button", name="Show fewer").click()
    assert block.locator("li").count() == 8


def test_a_line_tells_its_values(opened):
    page = opened()
    chart = page.locator("article .curve").first
    chart.hover()
    assert "2024-" in page.locator("article .reading").first.inner_text()
    page.mouse.move(0, 0)
    assert page.locator("article .reading").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened, scheme):
    page = opened(color_scheme=scheme)

    def brightness():
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(",")) / 765

    assert (brightness() < 0.3) == (scheme == "dark")
    page.locator("#theme").click()
    assert (brightness() < 0.3) == (scheme == "light")


def test_at_the_width_of_a_phone(opened):
    page = opened(390, 844, has_touch=True, is_mobile=True)
    assert no_sideways_scrolling(page)
    page.locator("#search").fill("place")
    assert no_sideways_scrolling(page)
    card = page.locator("article.card").first.bounding_box()
    assert card["x"] >= 0
    assert card["x"] + card["width"] <= 390


def test_by_keyboard_alone(opened):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'components'")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("a & b")
    for _ in ("colours", "fold", "the label that was found"):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_the_overview_sorts_and_filters(opened):
    page = opened()
    rows = page.locator("#matrix tbody tr")
    assert rows.count() == 3
    page.get_by_role("button", name="hour", exact=True).click()
    values = [float(v) for v in page.locator("#matrix td:nth-child(5)").evaluate_all(
        "cells => cells.map(c => c.dataset.value)"
    )]  # fmt: skip
    assert values == sorted(values, reverse=True)
    name = page.locator("article h3").nth(1).inner_text().removeprefix("Component 2: ")
    page.locator("#filter").fill(name)
    assert "of 3" in page.locator("#filter-status").inner_text()
    assert page.locator("article.card:visible").count() < 3


def test_two_components_side_by_side(opened):
    page = opened()
    assert page.locator("#compared > section").count() == 4
    page.locator("#two").select_option("2")
    assert "3" in page.locator("#compared .second").first.inner_text()
    assert page.locator("#compared .line").count() >= 2 * 2
    assert page.locator("#compared li.pair .bar").count() == 2 * 10
    assert no_sideways_scrolling(page)


@pytest.mark.parametrize("kind", ["CSV", "SVG", "PNG"])
def test_a_component_is_saved_without_a_server(opened, kind, tmp_path):
    page = opened()
    with page.expect_download() as waiting:
        page.locator("article").first.get_by_role("button", name=kind).click()
    file = tmp_path / waiting.value.suggested_filename
    assert file.name == f"component-1.{kind.lower()}"
    waiting.value.save_as(file)
    content = file.read_bytes()
    if kind == "PNG":
        assert content.startswith(b"\x89PNG")
        return
    text = content.decode("utf-8-sig")
    if kind == "CSV":
        lines = list(csv.reader(io.StringIO(text)))
        assert lines[0] == ["mode", "label", "value", "overall", "rank"]
        assert len(lines) == 1 + 40 + 24 + 30 + 4
    else:
        ElementTree.fromstring(text)
        assert "script" not in text.replace("&lt;script", "").replace("&lt;/script", "")


def test_the_values_of_a_line_by_keyboard(opened):
    page = opened()
    page.locator("article .curve").first.focus()
    note = page.locator("article .mode h4 span").first
    first = note.inner_text()
    page.keyboard.press("ArrowRight")
    assert note.inner_text() != first
    page.keyboard.press("Home")
    assert note.inner_text().startswith("2024-01-01: ")
    assert note.get_attribute("role") == "status"


def test_long_lists_are_not_in_the_page_as_a_whole(browser, tmp_path):
    rng = np.random.default_rng(0)
    modes = (Mode("user", [f"user {k}" for k in range(3000)]), Mode("hour", np.arange(24), "cycle"))
    model = CPModel([rng.gamma(0.5, 1.0, (len(m), 2)) for m in modes], None, "poisson", modes)
    page = browser.new_page()
    page.goto(write_report(tmp_path / "long.html", model).as_uri())
    page.get_by_role("button", name="more").first.click()
    box = page.locator(".long").first
    assert box.locator("li").count() < 40
    assert box.bounding_box()["height"] < 400
    last = box.locator("li").last.inner_text()
    box.evaluate("e => { e.scrollTop = e.scrollHeight; }")
    page.wait_for_function("t => !document.querySelector('.long').innerText.includes(t)", arg=last)
    assert int(box.locator("li").last.get_attribute("aria-posinset")) == 2992
    page.close()


CONTRAST = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (node) => {
    for (let e = node; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.getClientRects().length) continue;
    if (node.closest("script, style, title, .unseen, .shares")) continue;
    const style = getComputedStyle(node);
    const inSvg = node instanceof SVGElement;
    const [a, b] = [light(parse(inSvg ? style.fill : style.color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${walker.currentNode.data.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(opened, scheme):
    page = opened(color_scheme=scheme)
    assert page.evaluate(CONTRAST) == []


def test_without_scripts_it_still_says_everything(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("article.card").count() == 3
    assert page.locator("form.search").is_hidden()


def test_on_paper(opened):
    page = opened()
    page.emulate_media(media="print")
    assert page.locator("header.top").is_hidden()
    assert page.locator("article.card").first.is_visible()
