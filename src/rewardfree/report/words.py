"""What a reader of a page has to know: its words in a sentence each, and what is found in words."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from rewardfree.report.gaps import Lines, Names, Panel, levels, panel_name

#: In the order in which a page says them; each may use those before it.
WORDS = {
    "gap": (
        "The gap of a plan is the expected return that it gives up against the best policy: 0 is the best "
        "there is."
    ),
    "Alg 2": (
        "Alg 2 explores with a generative model: it asks for the next state of any state and action, where "
        "its estimate is least certain."
    ),
    "Alg 3": (
        "Alg 3 explores without a generative model: it plays episodes from the start towards uncertain "
        "places, and keeps the sample of one step of each."
    ),
    "bonus": (
        "The bonus is what a planner adds to the estimated value of an action because the estimate may be "
        "too low; “the mean alone” plans without it."
    ),
    "β": "β says how large the bonus of a planner or an explorer is: β standard deviations of the estimate.",
}
#: A word that is used with another one.
_USED_WITH = {"β": ("bonus",), "bonus": ("β",)}
#: What policies without data are.
_POLICIES = {
    "myopic": "the myopic policy, which takes the action with the largest reward now",
    "random": "the random policy",
}
#: A panel's name, the gap of its best policy without data, the smallest mean, and half of its interval.
_Found: TypeAlias = tuple[str, float, float, float]
#: Planning hardly pays where the best policy without data loses this share of what the random one does.
LITTLE = 0.05
#: What it says of a world that a policy without data wins.
_MEANINGS = {
    "little": (
        "Where so little is lost without planning, a low curve says that the world was learned, not that "
        "this was needed."
    ),
    "policy": "No explorer has learned enough there to do better.",
}
#: Fewer panels than this are named one by one.
MANY = 5


def words_in(texts: Iterable[str]) -> dict[str, str]:
    """The words to explain on a page with these texts; every page has gaps."""
    text = "\n".join(texts)
    used = {"gap", *(word for word in WORDS if word in text)}
    used |= {other for word in used for other in _USED_WITH.get(word, ())}
    return {word: sentence for word, sentence in WORDS.items() if word in used}


def finding_without_data(lines: Lines, names: Names | None = None) -> list[str]:
    """Whether a policy without data wins, in a sentence for all worlds on which it is the same.

    It wins where it lies below the interval of the smallest mean gap at the start, of all lines and
    checkpoints.
    """
    groups: dict[tuple[str, str], list[_Found]] = {}
    for key, panel in lines.items():
        of_policies = {name: float(line.mean("start")[0]) for name, line in levels(panel).items()}
        if not of_policies or len(of_policies) == len(panel):
            continue
        policy = min(of_policies, key=lambda name: of_policies[name])
        gap, (mean, half) = of_policies[policy], _smallest(panel)
        outcome = _outcome(gap, mean, half)
        if outcome == "policy" and gap <= LITTLE * of_policies.get("random", 0.0):
            outcome = "little"
        groups.setdefault((outcome, policy), []).append((panel_name(key, names), gap, mean, half))
    return [_sentence(outcome, policy, places, len(lines)) for (outcome, policy), places in groups.items()]


def _smallest(panel: Panel) -> tuple[float, float]:
    """The smallest mean gap of all lines that use data, with half of its interval."""
    return min(
        pair
        for line in panel.values()
        if not line.level
        for pair in zip(line.mean("start").tolist(), line.half_width("start").tolist(), strict=True)
    )


def _outcome(gap: float, mean: float, half: float) -> str:
    if abs(gap - mean) <= half:
        return "open"
    return "policy" if gap <= mean else "data"


def _sentence(outcome: str, policy: str, places: Sequence[_Found], panels: int) -> str:
    titles, gaps, means, halves = zip(*places, strict=True)
    many = len(places) >= MANY
    where = f"{len(places)} of {panels} panels" if many else _joined([_quoted(title) for title in titles])
    intervals = [f"{m:.3f}" + f" ± {h:.3f}" * (h > 0.0) for m, h in zip(means, halves, strict=True)]
    smallest = _range(means) if many else _joined(intervals)
    level = _range(gaps) if many else _joined([f"{gap:.3f}" for gap in gaps])
    who = _POLICIES.get(policy, f"the {policy} policy")
    if outcome in _MEANINGS:
        return (
            f"On {where} a policy without data wins. It is {who}; its gap at the start is {level}. The "
            f"smallest mean gap of all explorers, planners and numbers of samples is {smallest}. "
            f"{_MEANINGS[outcome]}"
        )
    won = "data win" if outcome == "data" else "it cannot be told whether data win"
    return (
        f"On {where} {won}: the smallest mean gap at the start is {smallest}. The best policy without data "
        f"is {who}; its gap is {level}."
    )


def _quoted(title: str) -> str:
    """A name in a list: one with a comma is set apart."""
    return f"“{title}”" if "," in title else title


def _joined(texts: Sequence[str]) -> str:
    texts = texts if len(set(texts)) > 1 else texts[:1]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"
