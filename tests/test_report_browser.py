"""The page in a real browser: Debian's chromium, driven by Playwright."""

import shutil

import pytest
from reports import EVIL, full_report

playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed, so no browser can be driven"
)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)"
)
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
        page.on("request", lambda r: troubles.append(r.url) if r.url != address else None)
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
        assert page.get_by_role("heading", name=heading).is_visible()
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
    box = page.get_by_role("searchbox")
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


def test_without_scripts_it_still_says_everything(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("article.card").count() == 3
    assert page.locator("form.search").is_hidden()


def test_on_paper(opened):
    page = opened()
    page.emulate_media(media="print")
    assert page.locator("header.top").is_hidden()
    assert page.locator("article.card").first.is_visible()
