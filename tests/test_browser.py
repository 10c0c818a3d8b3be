"""The page of a sweep in a real browser: no error, no request, switches that work, and all can be read."""

import itertools
import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardfree.cli.app import app
from rewardfree.experiments.folder import ResultsFolder
from rewardfree.studies.paper.study import Figure1

pytestmark = pytest.mark.browser
#: What Debian calls them.
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
LOGS = {"browser": "ALL", "performance": "ALL"}
#: What is measured on a page, as functions of its own language.
CHECKS = Path(__file__).with_name("browser_checks.js").read_text(encoding="utf-8")
#: Strategies have planners of their own: not every choice has something to show.
OWN = """
name = "own"
runs = 3
batch = 3
samples_per_step = [4, 16, 64]
worlds = [
    {type = "sharpened_world", states = 12, actions = 8},
    {type = "corridor_world", states = 12, actions = 8},
]
models = [
    {name = "m", type = "Model", kernel = {type = "Matern", nu = 1.5, lengthscale = 0.1}, ridge = 0.1},
]
strategies = [
    {name = "online", type = "Online", beta = 0.1},
    {name = "greedy", type = "GreedyMaxVariance"},
    {name = "generative", type = "Generative"},
]
planners = [
    {name = "mean", type = "Mean", for = ["generative"]},
    {name = "optimistic", type = "Optimistic", beta = 0.1, for = ["online", "greedy"]},
]
"""
BOTH = pytest.mark.parametrize("which", ["page", "own_page"])
ALL = pytest.mark.parametrize("which", ["page", "judged_page", "own_page"])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of a small reproduction."""
    out = tmp_path_factory.mktemp("page")
    ran = CliRunner().invoke(app, ["reproduce", "figure1", "--quick", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    (found,) = out.rglob("report.html")
    return found


@pytest.fixture(scope="module")
def own_page(tmp_path_factory):
    """The report of a sweep of one's own."""
    return reported(tmp_path_factory.mktemp("own"), OWN)


def reported(out, sweep):
    """The page of a sweep's file."""
    file, folder = out / "own.toml", out / "own"
    file.write_text(sweep)
    for arguments in (["sweep", str(file), "--out", str(folder)], ["report", str(folder)]):
        ran = CliRunner().invoke(app, arguments)
        assert ran.exit_code == 0, ran.output
    return folder / "report.html"


@pytest.fixture(scope="module")
def judged_page(page, tmp_path_factory):
    """What the full run's page would be of the small reproduction's results: with findings and verdicts."""
    copy = tmp_path_factory.mktemp("judged") / "figure1"
    shutil.copytree(page.parent, copy)
    return Figure1().page_of(ResultsFolder(copy))


@pytest.fixture(scope="module")
def single_page(tmp_path_factory):
    """The report of one run of each strategy."""
    out = tmp_path_factory.mktemp("single")
    return reported(out, OWN.replace("runs = 3", "runs = 1"))


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
    return shown(browser, page, request.param)


def shown(browser, page, width, scheme="light"):
    """A page at a width, drawn, on a system that is light or dark."""
    resize(browser, width)
    wish = {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
    for kind in LOGS:
        browser.get_log(kind)  # what came before is not this page's
    browser.get(page.as_uri())
    waiting(browser).until(
        lambda it: it.execute_script("return document.documentElement.dataset.ready") == "yes"
    )
    return browser


def waiting(browser):
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, 60)


def resize(browser, width):
    sizes = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)


def figures(browser, section):
    """Everything that the figures of a section show, as text."""
    script = """
        return JSON.stringify([...document.querySelectorAll('#' + arguments[0] + ' .js-plotly-plot')].map(
            ({ data, layout }) => [data, layout.title.text, layout.xaxis.title.text, layout.yaxis.title.text,
                                   layout.shapes]));
    """
    return browser.execute_script(script, section)


def check(browser, what, *arguments):
    """What a function of CHECKS, or an expression, says of the page."""
    call = f"{what}(...arguments)" if what.isidentifier() else what
    return browser.execute_script(f"{CHECKS}\nreturn {call};", *arguments)


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
        seen.add((figures(opened, "curves"), table))
    assert len({curves for curves, _ in seen}) == len({table for _, table in seen}) == len(radios)
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


# Words


@ALL
def test_words_are_explained_where_they_first_appear(browser, request, which):
    shown(browser, request.getfixturevalue(which), 1280)
    for word in ("gap", "Alg 2", "Alg 3", "bonus", "β"):
        sentence = check(browser, "explained", word)
        assert sentence and word in sentence and sentence.endswith("."), word


def test_what_is_found_is_said(browser, own_page):
    sentences = check(shown(browser, own_page, 1280), "texts", ".finding")
    assert sentences and all("policy" in sentence and "gap" in sentence for sentence in sentences)
    assert check(browser, "texts", "#notice") == []


def test_a_quick_page_says_so_at_the_top_and_has_no_verdicts(opened):
    (text,) = check(opened, "texts", "#notice")
    assert (
        text.startswith("QUICK")
        and check(opened, "rect(document.querySelector('#notice')).top + scrollY") == 0
    )
    assert check(opened, "all('.chip, .finding').length") == 0
    (claims,) = check(opened, "texts", "#claims")
    assert not re.search(r"^(holds|does not hold|depends|unknown|accounting)", claims, re.M)


def test_a_full_page_has_findings_and_a_badge_for_each_verdict(browser, judged_page):
    """Colours of verdicts are different, and those of claims that are not judged are grey."""
    shown(browser, judged_page, 400)
    assert check(browser, "texts", "#notice") == []
    assert any("a policy without data wins" in text for text in check(browser, "texts", ".finding"))
    (heading,) = check(browser, "texts", "#brief h2")
    assert heading == "In short"
    badges = check(browser, "badges")
    assert len(badges) == 8
    assert {"holds", "does not hold", "unknown", "accounting, no verdict"} <= {
        each["text"] for each in badges
    }
    colours = {kind(each["text"]): each["colour"] for each in badges}
    assert len(set(colours.values())) == len(colours) and all(each["above"] for each in badges)


def kind(verdict):
    """Verdicts that have one colour."""
    return {"unknown": "open", "accounting, no verdict": "open"}.get(verdict, verdict.split(" on ")[0])


def test_a_page_that_finds_nothing_explains_its_words(browser, page):
    assert check(shown(browser, page, 1280), "texts", "#brief h2") == ["Words"]


def test_one_run_has_no_interval(browser, single_page):
    shown(browser, single_page, 1280)
    for part in ("#table", "#curves"):
        assert not check(browser, f"document.querySelector('{part}').innerText.includes('±')")
    for lead in ("#table .lead", "#curves .lead"):
        (text,) = check(browser, "texts", lead)
        assert text.lower().replace("gaps of ", "").startswith("one run")
    assert not [name for name in check(browser, "layers") if name == "band"]


# Tables


@BOTH
def test_the_table_follows_the_axis_and_its_best_values_are_bold(browser, request, which):
    shown(browser, request.getfixturevalue(which), 1280)
    for axis, *_ in every_choice(browser):
        (name,) = check(browser, "texts", f"input[value={axis}] + span")
        tables = check(browser, "tables")
        assert tables
        for table in tables:
            assert table["heads"][0] == name
            costs = [float(head.replace(",", "")) for head in table["heads"][1:]]
            assert costs == sorted(costs)
            for i in range(len(costs)):
                check_column([(row["kind"], *row["cells"][i]) for row in table["rows"]])


def check_column(column):
    """The smallest mean is bold where there are several, and a policy without data that is no worse."""
    lines, policies = (
        [(float(text), bold) for kind, text, bold in column if kind == wanted and text[0].isdigit()]
        for wanted in ("line", "level")
    )
    best = min(value for value, _ in lines)
    assert all(bold == (value == best and len(lines) > 1) for value, bold in lines)
    least = min(value for value, _ in policies)
    assert all(bold == (value == least <= best) for value, bold in policies)


def every_choice(browser):
    """Make all choices of axis, planner and measure that can be made, one after the other."""
    names = ("axis", "planner", "measure")
    values = [check(browser, "values", f"input[name={name}]") for name in names]
    assert all(values)
    for chosen in itertools.product(*values):
        for name in ("axis", "planner"):  # back to what every planner has, or some could not be chosen
            press(browser, f'input[name="{name}"]')
        for name, value in zip(names, chosen, strict=True):
            press(browser, f'input[name="{name}"][value="{value}"]')
        if check(browser, "values", "#curves input:checked") == [chosen[0], chosen[2], chosen[1]]:
            yield chosen


# Figures


@pytest.mark.parametrize("width", [1440, 1024, 400])
@BOTH
def test_labels_do_not_collide_and_no_panel_is_empty(browser, request, which, width):
    shown(browser, request.getfixturevalue(which), width)
    choices = 0
    for choice in every_choice(browser):
        assert check(browser, "faults") == [], choice
        choices += 1
    assert choices == {"page": 18, "own_page": 10}[which]


def test_labels_do_not_collide_after_a_screen_was_turned(browser, own_page):
    from selenium.webdriver.support.wait import WebDriverWait

    shown(browser, own_page, 1440)
    press(browser, 'input[value="steps"]')
    ticks = "all('#curves .plot').map((plot) => plot.layout.xaxis.tickvals.length)"
    wide = check(browser, ticks)
    resize(browser, 400)
    WebDriverWait(browser, 20).until(lambda it: max(check(it, ticks)) < min(wide))
    assert check(browser, "faults") == []


def test_a_choice_that_leaves_nothing_cannot_be_made(browser, own_page):
    """The generative model has no episodes, and nothing else was planned with the mean."""
    shown(browser, own_page, 1280)
    assert check(browser, "values", "input:disabled") == []
    press(browser, 'input[value="mean"]')
    assert check(browser, "values", "input:disabled") == ["episodes"]
    shown_curves = "all('.legend li:not([hidden]) button').map((button) => button.dataset.curve)"
    assert check(browser, shown_curves) == ["generative", "myopic", "random"]
    press(browser, 'input[value="optimistic"]')
    press(browser, 'input[value="episodes"]')
    assert check(browser, "values", "input:disabled") == ["mean"]


def test_without_any_curve_a_sentence_stands_for_the_panels(browser, own_page):
    shown(browser, own_page, 1280)
    for key in ("online", "greedy"):
        press(browser, f'.legend button[data-curve="{key}"]')
    (sentence,) = check(browser, "texts", "#curves .nothing")
    assert check(browser, "curvesShown") == 0 and "hidden" in sentence
    press(browser, '.legend button[data-curve="online"]')
    assert check(browser, "curvesShown") == 2 and check(browser, "texts", "#curves .nothing") == []


# Narrow screens


def test_the_first_column_stays_while_a_table_moves(browser, page):
    moved = check(shown(browser, page, 400), "moved")
    assert moved["by"] > 20 and abs(moved["shift"]) < 1 and abs(moved["start"]) < 1
    assert moved["share"] < 0.5 and moved["seen"], "names leave room for numbers, and lie over them"
    assert re.fullmatch(r"rgb\(\d+, \d+, \d+\)", moved["background"]), "numbers do not shine through"


def test_buttons_are_tidy_on_a_narrow_screen(browser, page):
    """Rows of one height that fill their width and end where the others do, large enough for a finger."""
    groups = check(shown(browser, page, 400), "buttons")
    assert len(groups) >= 6
    for group in groups:
        for _, buttons in itertools.groupby(group["buttons"], key=lambda button: button["top"]):
            row = list(buttons)
            heights = [button["height"] for button in row]
            assert abs(row[0]["left"] - group["left"]) < 1 and abs(row[-1]["right"] - group["right"]) < 1
            assert min(heights) >= 40 and max(heights) - min(heights) < 1
            assert not any(button["cut"] for button in row)
    for end in ("left", "right"):
        assert len({round(group[end]) for group in groups}) == 1


# Light and dark


def brightness(colour):
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_interval_lies_over_a_curve_and_curves_are_bright_in_the_dark(browser, page, scheme):
    shown(browser, page, 1280, scheme)
    layers = check(browser, "layers")
    assert layers == sorted(layers) and set(layers) == {"band", "curve"}
    drawn, explained = check(browser, "curveColours"), check(browser, "legendColours")
    assert drawn and drawn == explained[: len(drawn)]
    if scheme == "dark":  # on white two colours of the palette are light; their lines are told apart by hue
        background = check(browser, "background", "main > section")
        assert all(check(browser, "contrast", colour, background) >= 4.5 for colour in explained)


@ALL
@pytest.mark.parametrize(("scheme", "low", "high"), [("light", 200, 256), ("dark", -1, 60)])
def test_the_page_is_light_or_dark_as_the_system_and_can_be_read(browser, request, which, scheme, low, high):
    shown(browser, request.getfixturevalue(which), 1280, scheme)
    assert check(browser, "faint") == []
    for part in ("body", "main > section", "#table th"):
        assert low < brightness(check(browser, "background", part)) < high


def test_a_reader_can_choose_light_or_dark_and_figures_follow(browser, own_page):
    shown(browser, own_page, 1280, "light")
    light = check(browser, "drawnInk")
    press(browser, 'input[name="theme"][value="dark"]')
    assert brightness(light) < 80 and brightness(check(browser, "drawnInk")) > 180
    assert check(browser, "faint") == []
    levels = check(
        browser, "document.querySelector('#curves .plot').layout.shapes.map((it) => it.line.color)"
    )
    assert len(levels) == 2 and all(brightness(colour) > 150 for colour in levels)
    for back in ("light", "system"):
        press(browser, f'input[name="theme"][value="{back}"]')
        assert check(browser, "drawnInk") == light


def test_paper_is_light(browser, own_page):
    shown(browser, own_page, 1280, "dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    for part in ("body", "main > section"):
        assert brightness(check(browser, "background", part)) > 250
    # Figures are drawn anew when the browser says that the medium has changed, which is a moment later.
    waiting(browser).until(lambda it: brightness(check(it, "drawnInk")) < 80)
    assert check(browser, "faint") == []
    assert not check(browser, "document.querySelector('.controls').checkVisibility()")
