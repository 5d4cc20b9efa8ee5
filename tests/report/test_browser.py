"""Reports in a real browser, where Playwright and a Chromium are installed."""

import shutil

import pytest

from report.report_pages import CASES, written

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="reports are seen in a browser where Playwright is installed"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SIZES = {"desk": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"there is no Chromium: {error}")
        yield opened
        opened.close()


@pytest.fixture(params=SIZES)
def opened(browser, request, tmp_path):
    """A function from a case to its page in the browser; in the end nothing was asked for, and nothing went wrong."""
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark")
    page = context.new_page()
    seen = []
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda asked: seen.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None)

    def go(kind, K):
        path = tmp_path / "page.html"
        path.write_text(written(kind, K)[1], encoding="utf-8")
        page.goto(path.as_uri())
        return page

    yield go
    assert seen == []
    context.close()


def faded(page):
    return set(page.evaluate("[...document.querySelectorAll('.faded')].map((part) => part.dataset.of)"))


@pytest.mark.parametrize(("kind", "K"), CASES)
def test_a_page_fits_the_window_and_shows_its_clusters(opened, kind, K):
    page = opened(kind, K)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.locator("figure svg").count() == page.locator("figure").count() >= 4
    found = written(kind, K)[0].summary_.K
    assert page.locator("tbody tr").count() == found
    assert page.locator("svg [data-of]").count() >= found
    named = (
        "[...document.querySelectorAll('svg [data-of] > title')].map((t) => [t.parentNode.dataset.of, t.textContent])"
    )
    assert all(text.splitlines()[0].endswith(f": {number}") for number, text in page.evaluate(named))


def test_a_cluster_is_pointed_at_kept_and_let_go(opened):
    page = opened(*CASES[0])
    row = page.locator("tbody tr[data-of='1']")
    row.hover()
    assert faded(page) == {"0"}
    page.locator("h1").hover()
    assert faded(page) == set()
    button = row.locator("button")
    button.focus()
    page.keyboard.press("Enter")
    page.locator("h1").hover()
    assert faded(page) == {"0"}
    assert button.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert faded(page) == set()
    assert button.get_attribute("aria-pressed") == "false"
    page.locator("svg [data-of='0']").first.dispatch_event("click")
    assert faded(page) == {"1"}


def test_the_table_is_sorted_by_number_and_by_name(opened):
    page = opened(*CASES[0])
    for column, head in enumerate(page.locator("thead th").all()):
        for order in ("ascending", "descending"):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == order
            cells = page.locator(f"tbody td:nth-child({column + 1})")
            values = [cell.get_attribute("data-value") for cell in cells.all()]
            known = [cell.text_content() for cell in cells.all()] if None in values else list(map(float, values))
            assert known == sorted(known, reverse=order == "descending")
