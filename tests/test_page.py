"""The page of a sweep: what its view holds, that bytes repeat, and that nothing in it reaches outside."""

import base64
import json
import re

import numpy as np
import pytest

from rewardfree.report.gaps import Line
from rewardfree.report.numbers import numbers
from rewardfree.report.view import about, maps_view, page, sweep_view, write_page
from rewardfree.studies.paper.claims import DEPENDS, DEPENDS_ON_TIES, FAILS, HOLDS
from rewardfree.studies.paper.recorded import recorded_views
from rewardfree.studies.paper.repeats import spread_view

SAMPLES = np.array([10.0, 40.0])


def line(level=1.0, runs=3, episodes=1):
    gaps = level * np.array([[1.0, 0.5], [1.2, 0.4], [1.1, 0.6]])[:runs]
    cost = {"samples": SAMPLES, "episodes": episodes * SAMPLES, "steps": 10 * SAMPLES}
    return Line(cost, {"start": gaps, "mean": gaps, "max": 2 * gaps})


def myopic(value=0.3):
    zero = np.zeros(1)
    gaps = np.array([[value]])
    return Line(
        {"samples": zero, "episodes": zero, "steps": zero}, {"start": gaps, "mean": gaps, "max": gaps}
    )


def found():
    panel = {
        ("no data", "myopic"): myopic(),
        ("online", "mean"): line(),
        ("online", "optimistic"): line(1.5),
        ("generative", "optimistic"): line(0.7, episodes=0),
    }
    return {("matern15, draw 0", "matern15"): panel}


def seen(n=2, steps=2, s=5, a=4, H=3):
    rng = np.random.default_rng(0)
    run = {
        "strategy": "online",
        "sizes": np.array([1, 3][:n]),
        "sigma": rng.random((n, steps, s, a)).astype(np.float32),
        "state": rng.random((steps, 3)),
        "action": rng.random((steps, 3)),
        "value": rng.random((n, H, s)),
        "policy": rng.random((n, H, s)),
    }
    world = {
        "world": "matern15, draw 0",
        "model": "matern15",
        "steps": [0, 2],
        "reward": rng.random((s, a)),
        "law": rng.random((s, s)),
    }
    return {**world, "law_action": 0.5, "runs": [run]}


def unpacked(table):
    values = np.frombuffer(base64.b64decode(table["bytes"]), np.uint8).reshape(
        table["rows"], table["columns"]
    )
    return table["low"] + (table["high"] - table["low"]) * values / 255


def whole_view():
    view = sweep_view(found(), "A title", "settings", {("matern15, draw 0", "matern15"): "Matérn 1.5"})
    view |= {"claims": [], "spread": spread_view(found()), "maps": [maps_view(seen())]}
    view["about"] = {"command": "rewardfree sweep"}
    return view


def test_a_view_holds_what_the_lines_do():
    (panel,) = sweep_view(found(), "t", "s")["panels"]
    own = next(each for each in panel["lines"] if (each["strategy"], each["planner"]) == ("online", "mean"))
    assert own["runs"] == 3 and own["samples"] == [10.0, 40.0] and own["steps"] == [100.0, 400.0]
    np.testing.assert_allclose(own["gaps"]["start"]["mean"], [1.1, 0.5], rtol=1e-5)
    np.testing.assert_allclose(own["gaps"]["max"]["mean"], [2.2, 1.0], rtol=1e-5)
    np.testing.assert_allclose(own["gaps"]["start"]["deviation"], [0.1, 0.1], rtol=1e-5)
    np.testing.assert_allclose(own["gaps"]["start"]["half"], 2 * [4.302653 * 0.1 / 3**0.5], rtol=1e-5)
    assert panel["levels"] == [
        {"key": "myopic", "label": "Myopic policy, no data", "gaps": {"start": 0.3, "max": 0.3}}
    ]


def test_what_the_authors_recorded_stands_beside_what_was_planned_alike():
    assert [panel["recorded"] for panel in sweep_view(found(), "t", "s")["panels"]] == [[]]
    ((_, panel),) = found().items()
    (theirs,) = recorded_views("matern15", panel)  # Alg 2 has a bonus here, not the mean as theirs
    assert recorded_views("my kernel", panel) == []
    assert theirs["strategy"] == "online" and theirs["planner"] == "mean"
    assert theirs["samples"] == sorted(theirs["samples"]) and len(theirs["mean"]) == len(theirs["samples"])


def test_one_seed_is_no_range():
    assert about([6000], {}) == {"seeds": "one, 6000"}
    assert about(range(4), {"command": "c"}) == {"seeds": "4, from 0 to 3", "command": "c"}


def test_axes_and_measures_are_in_the_order_of_a_reader():
    view = json.loads(json.dumps(sweep_view(found(), "t", "s")))
    assert list(view["axes"]) == ["samples", "episodes", "steps"]
    assert list(view["measures"]) == ["start", "max"]


def test_draws_are_side_by_side():
    lines = found() | {("matern15, draw 1", "matern15"): {("online", "mean"): line(3.0)}}
    spread = spread_view(lines)
    assert spread["draws"] == 2
    (own,) = spread["lines"]  # what both draws have
    assert own["kernel"] == "Matérn 1.5" and own["strategy"] == "online"
    np.testing.assert_allclose(own["gaps"]["start"], [[1.1, 0.5], [3.3, 1.5]], rtol=1e-5)


def test_maps_come_back_to_a_byte():
    portrait = seen()
    view = maps_view(portrait)
    reward = portrait["reward"]
    np.testing.assert_allclose(unpacked(view["reward"]), reward, atol=0.51 * np.ptp(reward) / 255 + 1e-5)
    sigma = portrait["runs"][0]["sigma"]
    at = view["runs"][0]["moments"][1]["steps"][0]
    np.testing.assert_allclose(unpacked(at["sigma"]), sigma[1, 0], atol=0.51 * np.ptp(sigma) / 255 + 1e-5)
    assert view["steps"] == [1, 3]  # as a reader counts
    assert len(at["visited"]["state"]) == 3
    assert len(view["runs"][0]["moments"][0]["steps"][0]["visited"]["state"]) == 1


def test_maps_are_named_as_their_panels_are():
    key = ("matern15, draw 0", "matern15")
    assert maps_view(seen(), {key: "Matérn 1.5"})["title"] == "Matérn 1.5"
    assert maps_view(seen(), {("other", "matern15"): "Other"})["title"] == "matern15, draw 0, matern15"


def test_one_scale_for_sigma_or_nothing_would_be_seen_to_shrink():
    view = maps_view(seen())
    ends = {
        (at["sigma"]["low"], at["sigma"]["high"])
        for moment in view["runs"][0]["moments"]
        for at in moment["steps"]
    }
    assert len(ends) == 1


def test_a_map_without_contrast_is_a_map():
    flat = maps_view({**seen(), "reward": np.full((5, 4), 0.25)})["reward"]
    np.testing.assert_array_equal(unpacked(flat), 0.25)


def test_numbers_are_short_and_the_same_everywhere():
    assert numbers([1 / 3, 0.1 + 0.2, 123456789.0]) == [0.333333, 0.3, 123457000.0]


def test_the_same_view_is_the_same_bytes(tmp_path):
    one, other = (write_page(tmp_path / name, whole_view()) for name in ("one.html", "other.html"))
    assert one.read_bytes() == other.read_bytes()


def test_a_page_holds_everything_and_asks_for_nothing():
    text = page(whole_view())
    own = text.replace(re.search(r"<script>(/\*\*.*?)</script>", text, re.S)[1], "")  # but plotly's own code
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", own)
    assert "@import" not in own and "url(" not in own and "fetch(" not in own and "XMLHttp" not in own
    view = re.search(r'<script id="view" type="application/json">(.*?)</script>', text, re.S)[1]
    assert json.loads(view) == json.loads(json.dumps(whole_view()))


@pytest.mark.parametrize("verdict", [HOLDS, FAILS, DEPENDS, DEPENDS_ON_TIES])
def test_every_verdict_has_its_colour(verdict):
    (kinds,) = re.findall(r"const kinds = (\{.*?\});", page(whole_view()))
    assert verdict in json.loads(kinds)


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "$title $css"]
)
def test_names_from_a_file_cannot_become_code(name):
    view = whole_view() | {"title": name}
    text = page(view)
    assert "<script>alert" not in text and "<img src=x" not in text
    stored = re.search(r'<script id="view" type="application/json">(.*?)</script>', text, re.S)[1]
    assert json.loads(stored)["title"] == name
