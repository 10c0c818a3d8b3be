"""The page of a sweep in a real browser: no error, no request, and every switch does something."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from rewardfree.cli.app import app

pytestmark = pytest.mark.browser
#: What Debian calls them.
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
LOGS = {"browser": "ALL", "performance": "ALL"}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of a small reproduction."""
    out = tmp_path_factory.mktemp("page")
    ran = CliRunner().invoke(app, ["reproduce", "figure1", "--quick", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    (found,) = out.rglob("report.html")
    return found


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    assert CHROMIUM and DRIVER, "chromium and chromedriver must be installed: see `make test-browser`"
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", LOGS)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(params=[1280, 400], ids=["wide", "narrow"])
def opened(browser, page, request):
    """The page at a width, drawn."""
    from selenium.webdriver.support.wait import WebDriverWait

    sizes = {"width": request.param, "height": 900, "deviceScaleFactor": 1, "mobile": request.param < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
    for kind in LOGS:
        browser.get_log(kind)  # what came before is not this page's
    browser.get(page.as_uri())
    WebDriverWait(browser, 60).until(
        lambda it: it.execute_script("return document.documentElement.dataset.ready") == "yes"
    )
    return browser


def figures(browser, section):
    """Everything that the figures of a section show, as text."""
    script = """
        return JSON.stringify([...document.querySelectorAll('#' + arguments[0] + ' .js-plotly-plot')].map(
            ({ data, layout }) => [data, layout.title.text, layout.xaxis.title.text, layout.yaxis.title.text,
                                   layout.shapes]));
    """
    return browser.execute_script(script, section)


def press(browser, selector):
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def test_it_is_drawn_without_an_error_or_a_request(opened):
    plots = json.loads(figures(opened, "curves"))
    assert len(plots) == 3 and all(len(data) >= 8 for data, *_ in plots)
    assert [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"] == []
    sent = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    urls = [
        each["params"]["request"]["url"] for each in sent if each["method"] == "Network.requestWillBeSent"
    ]
    assert urls, "the page itself is one"
    assert [url for url in urls if not url.startswith(("file:", "data:", "blob:"))] == []


def test_nothing_is_wider_than_the_screen(opened):
    width, shown = opened.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert width <= shown


@pytest.mark.parametrize("name", ["axis", "measure", "planner"])
def test_every_switch_of_the_curves_changes_them(opened, name):
    radios = opened.execute_script(
        "return [...document.querySelectorAll(`input[name=${arguments[0]}]`)].map((each) => each.value)", name
    )
    assert len(radios) >= 2
    seen = set()
    for value in radios:
        press(opened, f'input[name="{name}"][value="{value}"]')
        table = opened.execute_script("return document.querySelector('#table').innerText")
        seen.add((figures(opened, "curves"), table if name != "axis" else ""))
    assert len(seen) == len(radios)
    press(opened, f'input[name="{name}"][value="{radios[0]}"]')


def test_a_curve_can_be_hidden_and_shown_again(opened):
    before = figures(opened, "curves")
    for key in opened.execute_script(
        "return [...document.querySelectorAll('.legend button')].map((each) => each.dataset.curve)"
    ):
        press(opened, f'.legend button[data-curve="{key}"]')
        assert figures(opened, "curves") != before, key
        press(opened, f'.legend button[data-curve="{key}"]')
        assert figures(opened, "curves") == before, key


@pytest.mark.parametrize("name", ["world", "run", "step"])
def test_every_switch_of_the_maps_changes_them(opened, name):
    radios = opened.execute_script(
        "return [...document.querySelectorAll(`input[name=${arguments[0]}]`)].map((each) => each.value)", name
    )
    assert len(radios) >= 2
    seen = set()
    for value in radios:
        press(opened, f'input[name="{name}"][value="{value}"]')
        seen.add(figures(opened, "maps"))
    assert len(seen) == len(radios)


def test_the_slider_goes_through_the_samples(opened):
    seen, told = set(), []
    steps = int(opened.execute_script("return document.querySelector('.slider input').max"))
    for value in range(steps + 1):
        opened.execute_script(
            "const s = document.querySelector('.slider input'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input'))",
            str(value),
        )
        seen.add(figures(opened, "maps"))
        told.append(opened.execute_script("return document.querySelector('.slider output').textContent"))
    assert len(seen) == steps + 1 and told == ["4 samples", "8 samples", "16 samples"]


def test_claims_open_to_their_numbers(opened):
    assert opened.execute_script("return document.querySelectorAll('.claim').length") == 8
    opened.execute_script("document.querySelector('.claim summary').click()")
    assert opened.execute_script("return document.querySelector('.claim details').open")
    assert opened.execute_script("return document.querySelector('.claim details li').textContent").count(":")
