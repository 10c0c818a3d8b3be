"""What states and actions are made of, how a kernel sees them, and values as tables of text and numbers."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import rewardfree as rf
from rewardfree.registry import from_table, registered, to_table
from rewardfree.worlds.scaling import Scaling
from rewardfree.worlds.spaces import Spaces, wrap

PENDULUM = rf.Box.of(theta="angle", omega=(-8, 8))
angles = st.floats(-50.0, 50.0)
reals = st.floats(-1e6, 1e6)


def turned(angle):
    """An angle as a point of the circle, which knows nothing of turns."""
    return np.exp(1j * np.asarray(angle))


# Boxes.


def test_a_box_of_an_angle_a_bounded_and_a_free_variable():
    box = rf.Box.of(theta="angle", omega=(-8, 8), x=None)
    assert box.names == ("theta", "omega", "x") and box.size == 3
    assert box.low == (-math.pi, -8.0, -math.inf) and box.high == (math.pi, 8.0, math.inf)
    assert box.angles == (True, False, False) and box.angular.tolist() == [True, False, False]
    assert not box.bounded and PENDULUM.bounded
    assert box == rf.Box.of(theta="angle", omega=(-8.0, 8.0), x=(-math.inf, math.inf))
    assert hash(box) == hash(rf.Box.of(theta="angle", omega=(-8.0, 8.0), x=None))


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, r"a Box must have at least one variable, such as x=\(-1, 1\)"),
        ({"x y": (0, 1)}, "a variable's name must be a word, as a formula would write it, got 'x y'"),
        ({"1x": (0, 1)}, "a variable's name must be a word"),
        ({"x": "angel"}, r'x must be "angle", \(low, high\) or None, got \'angel\''),
        ({"x": 3}, r'x must be "angle", \(low, high\) or None, got 3'),
        ({"x": (0, 1, 2)}, r'x must be "angle", \(low, high\) or None'),
        ({"x": ("a", "b")}, r'x must be "angle", \(low, high\) or None'),
        ({"x": (1, 1)}, r"x must have low < high, got \(1.0, 1.0\): leave out a constant"),
        ({"x": (2, 1)}, "x must have low < high"),
        ({"x": (math.nan, 1)}, "x must have low < high"),
    ],
)
def test_what_is_no_box_is_refused(variables, said):
    with pytest.raises(ValueError, match=said):
        rf.Box.of(**variables)


def test_a_text_of_two_digits_is_no_pair_of_bounds():
    with pytest.raises(ValueError, match="x must be"):
        rf.Box.of(x="12")


@given(angles)
def test_wrap_turns_an_angle_into_one_turn(angle):
    wrapped = float(wrap(angle))
    assert -math.pi <= wrapped < math.pi
    assert abs(turned(wrapped) - turned(angle)) < 1e-13
    assert wrap(wrapped) == pytest.approx(wrapped, abs=1e-15) or abs(abs(wrapped) - math.pi) < 1e-14


@pytest.mark.parametrize("turns", range(-3, 4))
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_wrap_at_the_seam_stays_below_pi(turns, step):
    seam = np.nextafter((2 * turns + 1) * math.pi, step * np.inf) if step else (2 * turns + 1) * math.pi
    wrapped = float(wrap(seam))
    assert -math.pi <= wrapped < math.pi and math.pi - abs(wrapped) < 1e-14


def test_angles_alone_are_wrapped():
    values = np.array([[7.0, 7.0], [-4.0, -4.0]])
    wrapped = PENDULUM.wrapped(values)
    np.testing.assert_allclose(wrapped[:, 0], [7.0 - 2 * math.pi, 2 * math.pi - 4.0], atol=1e-15)
    assert wrapped[:, 1].tolist() == [7.0, -4.0]
    plain = rf.Box.of(x=(0, 1), y=None)
    assert plain.wrapped(values) is values


@given(angles, angles, reals, reals)
def test_a_change_is_the_shorter_way_round(a, b, x, y):
    box = rf.Box.of(theta="angle", x=None)
    start, end = np.array([[a, x]]), np.array([[b, y]])
    ((turn, moved),) = box.change(start, end)
    assert moved == y - x
    assert abs(turn) <= math.pi
    assert abs(turned(a) * turned(turn) - turned(b)) < 1e-12
    expected = abs(np.angle(turned(b) / turned(a)))
    assert abs(turn) == pytest.approx(expected, abs=1e-12)


@given(angles, st.floats(-8, 8), st.integers(-3, 3))
def test_a_kernel_sees_an_angle_as_a_point_of_the_circle(theta, omega, turns):
    here, again = (PENDULUM.features(np.array([[theta + k * math.tau, omega]])) for k in (0, turns))
    assert here.shape == (1, 3)
    assert here[0, 0] + 1j * here[0, 1] == pytest.approx(turned(theta), abs=1e-15)
    assert here[0, 2] == omega
    np.testing.assert_allclose(again, here, atol=1e-13)


def test_features_belong_to_their_variables():
    box = rf.Box.of(x=(0, 1), theta="angle", y=None, phi="angle")
    assert box.groups == (0, 1, 1, 2, 3, 3)
    assert box.features(np.zeros((2, 4))).tolist() == [[0, 1, 0, 0, 1, 0]] * 2
    spaces = Spaces(box, rf.Discrete(3))
    assert spaces.groups == (0, 1, 1, 2, 3, 3, 4, 4, 4)
    assert spaces.features(np.zeros((2, 4)), np.array([0, 2])).shape == (2, len(spaces.groups))


def test_variables_have_their_names_and_wrapped_angles():
    variables = PENDULUM.variables(np.array([[4.0, 1.0], [0.5, -2.0]]))
    assert list(variables) == ["theta", "omega"]
    np.testing.assert_allclose(variables["theta"], [4.0 - math.tau, 0.5], atol=1e-15)
    assert variables["omega"].tolist() == [1.0, -2.0]


@given(st.lists(st.tuples(angles, reals, reals), min_size=1, max_size=5))
def test_inside_moves_into_the_bounds_and_no_further(rows):
    box = rf.Box.of(theta="angle", omega=(-8, 8), x=None)
    inside = box.inside(np.array(rows))
    for (theta, omega, x), moved in zip(rows, inside, strict=True):
        assert moved.tolist() == [theta, min(max(omega, -8.0), 8.0), x]


@pytest.mark.parametrize(
    ("size", "most", "side"), [(1, 9, 9), (1, 8, 7), (1, 2, 2), (2, 9, 3), (3, 9, 2), (4, 9, 2)]
)
def test_candidates_are_an_even_grid_with_both_ends(size, most, side):
    box = rf.Box.of(**{f"u{i}": (-1 - i, 1 + i) for i in range(size)})
    candidates = box.candidates(most)
    assert candidates.shape == (side**size, size)
    for i in range(size):
        values = np.unique(candidates[:, i])
        np.testing.assert_allclose(
            values, [(1 + i) * (2 * k / (side - 1) - 1) for k in range(side)], atol=1e-15
        )
    assert len(np.unique(candidates, axis=0)) == side**size
    assert side == 2 or (candidates == 0.0).all(axis=1).any()  # rest is one of them


def test_candidates_of_an_angle_do_not_name_one_direction_twice():
    candidates = rf.Box.of(theta="angle").candidates(9)[:, 0]
    assert len(candidates) == 9
    gaps = np.abs(turned(candidates) - turned(np.roll(candidates, 1)))
    np.testing.assert_allclose(gaps, 2 * math.sin(math.pi / 9), rtol=1e-12)


def test_a_grid_without_bounds_is_refused_and_the_remedy_named():
    box = rf.Box.of(x=(0, 1), v=None, w=(0, math.inf))
    said = r"a grid of actions needs bounds, and v, w has none: give bounds=\{'v': \(low, high\)\} or pilot"
    with pytest.raises(ValueError, match=said):
        box.candidates(9)


def test_states_are_checked():
    box = rf.Box.of(x=(0, 1), y=(0, 1))
    checked = box.checked([[0, 1], [2, 3]], "state")
    assert checked.dtype == np.float64 and checked.tolist() == [[0, 1], [2, 3]]  # bounds are no walls
    for wrong in ([0.0, 1.0], [[0.0]], [[0.0, 1.0, 2.0]], np.zeros((2, 2, 2))):
        with pytest.raises(ValueError, match=r"state must have shape \(n, 2\) for x, y, got"):
            box.checked(wrong, "state")
    for wrong in (math.nan, math.inf):
        with pytest.raises(ValueError, match="state must be finite, got 1 NaN or infinite"):
            box.checked([[0.0, wrong]], "state")
    with pytest.raises(ValueError, match="state must be an array of numbers"):
        box.checked([["a", "b"]], "state")


# Labels.


def test_labels_are_unit_vectors_or_at_their_coordinates():
    labels = rf.Discrete(3)
    assert labels.features(np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert (labels.size, labels.names, labels.groups) == (1, ("action",), (0, 0, 0))
    placed = rf.Discrete(3, "s", ((0.0, 1.0), (0.5, 2.0), (1.0, 3.0)))
    assert placed.features(np.array([1, 2])).tolist() == [[0.5, 2.0], [1.0, 3.0]]
    assert placed.groups == (0, 0) and placed.names == ("s",)
    assert labels.candidates(2).tolist() == [0, 1, 2]
    variables = placed.variables(np.array([2, 1]))
    assert (
        list(variables) == ["s"]
        and variables["s"].dtype == np.float64
        and variables["s"].tolist() == [2.0, 1.0]
    )


@given(st.lists(st.integers(0, 6), max_size=9))
def test_labels_are_checked_and_whole_floats_are_labels(values):
    for given_ in (values, np.array(values, np.float64), np.array(values, np.uint8)):
        checked = rf.Discrete(7).checked(given_, "action")
        assert checked.dtype == np.int64 and checked.tolist() == values


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.5], r"action must be whole numbers of shape \(n,\), got float64 of shape \(1,\)"),
        ([math.nan], "action must be whole numbers"),
        ([math.inf], "action must be whole numbers"),
        (["a"], "action must be whole numbers"),
        ([[0]], r"action must be whole numbers of shape \(n,\), got int64 of shape \(1, 1\)"),
        (0, r"action must be whole numbers of shape \(n,\), got int64 of shape \(\)"),
        ([-1, 2], r"action must lie in 0\.\.2, got -1\.\.2"),
        ([0, 3], r"action must lie in 0\.\.2, got 0\.\.3"),
    ],
)
def test_what_is_no_label_is_refused(values, said):
    with pytest.raises(ValueError, match=said):
        rf.Discrete(3).checked(values, "action")


@pytest.mark.parametrize("n", [0, -1, 2.5, "three", True, None])
def test_labels_must_be_counted(n):
    with pytest.raises(ValueError, match="n must be a whole number"):
        rf.Discrete(n)


def test_coordinates_must_be_given_for_every_label():
    with pytest.raises(ValueError, match="coordinates must be given for each of 3 labels, got 2"):
        rf.Discrete(3, "s", ((0.0,), (1.0,)))


# Both together.


def test_names_of_a_formula_are_states_actions_and_next_states():
    spaces = Spaces(PENDULUM, rf.Box.of(torque=(-2, 2)))
    assert spaces.names == ("theta", "omega", "torque", "next_theta", "next_omega")
    state, action, next_state = (np.arange(n, dtype=float).reshape(2, -1) for n in (4, 2, 4))
    variables = spaces.variables(state, action, next_state + 10)
    assert tuple(variables) == (*spaces.names[:3], *spaces.names[3:])
    assert variables["omega"].tolist() == [1, 3] and variables["torque"].tolist() == [0, 1]
    assert variables["next_omega"].tolist() == [11, 13]
    np.testing.assert_allclose(turned(variables["next_theta"]), turned([10, 12]), atol=1e-14)


@pytest.mark.parametrize(
    "action", [rf.Box.of(u=(-1, 1)), rf.Box.of(u=(-1, 1), v=(0, 1)), rf.Discrete(4)], ids=repr
)
def test_every_pair_is_every_action_at_every_state(action):
    states, actions = np.random.default_rng(0).random((5, 2)), action.candidates(9)
    repeated, taken = Spaces(PENDULUM, action).every_pair(states, actions)
    pairs = [(s.tolist(), np.asarray(a).tolist()) for a in actions for s in states]
    assert [(s.tolist(), np.asarray(a).tolist()) for s, a in zip(repeated, taken, strict=True)] == pairs


def test_every_pair_of_labels():
    repeated, taken = Spaces(rf.Discrete(3, "s"), rf.Discrete(2)).every_pair(np.array([2, 0]), np.arange(2))
    assert (repeated.tolist(), taken.tolist()) == ([2, 0, 2, 0], [0, 0, 1, 1])


# Scaling.


@settings(max_examples=50)
@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 10**6))
def test_data_have_mean_0_and_variance_1(n, f, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, f)) * 10.0 ** rng.integers(-3, 4, f) + rng.normal(size=f)
    scaled = Scaling.of_data(features)(features)
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose((scaled**2).mean(axis=0), 1.0, rtol=1e-9)


def test_a_feature_that_does_not_vary_is_only_shifted():
    features = np.array([[3.0, 1.0, 1e9], [3.0, 2.0, 1e9], [3.0, 6.0, np.nextafter(1e9, 2e9)]])
    scaling = Scaling.of_data(features)
    assert scaling.scale[0] == 1.0 and scaling.scale[2] == 1.0  # a last digit is no variance
    scaled = scaling(features)
    assert scaled[:, 0].tolist() == [0.0, 0.0, 0.0] and np.abs(scaled).max() < 2.0
    assert scaling(np.array([[4.0, 3.0, 1e9]]))[0, :2].tolist() == [1.0, 0.0]


def test_a_fixed_kernel_sees_every_variable_on_the_unit_interval():
    spaces = Spaces(rf.Box.of(theta="angle", omega=(-8, 4)), rf.Discrete(2, coordinates=((5.0,), (7.0,))))
    scaling = Scaling.of_bounds(spaces)
    at_low = scaling(spaces.features(np.array([[-math.pi, -8.0]]), np.array([0])))
    at_high = scaling(spaces.features(np.array([[0.0, 4.0]]), np.array([1])))
    np.testing.assert_allclose(at_low, [[0.0, 0.5, 0.0, 5.0]], atol=1e-15)
    np.testing.assert_allclose(at_high, [[1.0, 0.5, 1.0, 7.0]], atol=1e-15)
    rng = np.random.default_rng(0)
    states = rng.uniform([-math.pi, -8.0], [math.pi, 4.0], (100, 2))
    inside = scaling(spaces.features(states, np.zeros(100, np.int64)))[:, :3]
    assert inside.min() >= 0.0 and inside.max() <= 1.0


def test_a_fixed_kernel_needs_bounds():
    with pytest.raises(ValueError, match="a kernel that is fixed needs bounds, and v has none"):
        Scaling.of_bounds(Spaces(rf.Box.of(x=(0, 1), v=None), rf.Discrete(2)))


# Values as tables.

KERNELS = [
    rf.SquaredExponential(0.3),
    rf.Matern(1.5, (0.1, 0.2)),
    rf.Matern(2.5, 1 / 3),
    rf.NeuralTangent(depth=3),
    rf.Linear((1.0, 2.0), bias=0.5),
    rf.kernels.Delta(),
    rf.SquaredExponential(0.3) + rf.kernels.Delta(),
    2.0 * rf.Matern(0.5, 0.1) * rf.Linear(3.0),
]
VALUES = [
    *KERNELS,
    rf.AutoKernel(),
    rf.AutoKernel((math.inf,), most=50),
    rf.AutoKernel((1.5, 2.5)),
    rf.Model(rf.AutoKernel(), pooled=True, centred=True),
    rf.Model(rf.AutoKernel(), ridge=1e-3),
    rf.Model(KERNELS[-1], ridge=0.1, pooled=True),
    rf.Uniform(),
    rf.Uniform(ties="random"),
    rf.Scout(),
    rf.Generative(),
    rf.Generative(candidates="sobol"),
    rf.Online(beta=0.1, fresh=True, empty="prior"),
    rf.Qiu(beta=1 / 3),
    rf.GreedyMaxVariance(),
    rf.Optimistic(0.1),
    rf.Mean(),
    rf.Pessimistic(0.5),
    PENDULUM,
    rf.Box.of(x=None, y=(0, math.inf)),
    rf.Discrete(4),
    rf.Discrete(2, "s", ((0.0, 1.5), (1.0, -2.0))),
    Spaces(PENDULUM, rf.Discrete(3)),
    rf.worlds.Observation((("cos", "theta"), ("is", "omega")), "float64"),
    None,
    True,
    3,
    0.1,
    "text",
    (1, (2.5, "x"), None),
    {},
    {"number": 1, "type": "Box", "table": {"a": (1, 2)}},
]


def through_text(value):
    """By way of strict JSON, which has no infinity of its own."""
    return from_table(json.loads(json.dumps(to_table(value), allow_nan=False)))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:60])
def test_what_was_written_is_read_again(value):
    again = through_text(value)
    assert again == value and type(again) is type(value) and repr(again) == repr(value)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_that_was_read_computes_the_same(kernel):
    x = np.random.default_rng(0).random((6, 2))
    assert np.array_equal(through_text(kernel)(x), kernel(x))


@given(st.floats(allow_nan=False))
def test_numbers_keep_their_last_bit(number):
    again = through_text(number)
    assert type(again) is float and again.hex() == number.hex()


def test_numbers_that_json_does_not_have():
    assert through_text((math.inf, -math.inf)) == (math.inf, -math.inf)
    assert math.isnan(through_text(math.nan))


def test_numpy_floats_are_numbers():
    assert through_text({"g": np.float64(9.81), "up": np.float64(np.inf)}) == {"g": 9.81, "up": math.inf}


class Own:
    """A kernel of a user's own."""

    def __call__(self, x, y=None):
        return np.ones((len(x), len(x if y is None else y)))

    def diag(self, x):
        return np.ones(len(x))


@pytest.mark.parametrize("kernel", [RBF(), Own()], ids=["scikit-learn", "own"])
def test_a_foreign_kernel_is_refused(kernel):
    model = rf.Model(kernel, ridge=0.1)
    for value in (kernel, model, rf.SquaredExponential(1.0) + model.kernel):
        with pytest.raises(ValueError, match="cannot be written to a file: only rewardfree's own kinds can"):
            to_table(value)


def test_code_and_arrays_are_refused():
    for value in (print, object(), np.ones(3), 1j, {1, 2}, rf.Box):
        with pytest.raises(ValueError, match="cannot be written to a file"):
            to_table(value)


def test_a_class_of_the_same_name_is_not_ours():
    @dataclass(frozen=True)
    class Box:
        names: tuple = ()

    with pytest.raises(ValueError, match="cannot be written to a file"):
        to_table(Box())


@pytest.mark.parametrize("name", ["Nothing", "os.system", "print", "", None, "Foreign", "Experience", 3])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(ValueError, match=f"there is no {name!r} here: the file is from a newer version"):
        from_table({"type": name})
    with pytest.raises(ValueError, match="there is no"):
        from_table([1, {"table": {"a": {"type": name, "x": 1}}}])


def test_a_table_without_a_name_is_refused():
    with pytest.raises(ValueError, match="there is no None here"):
        from_table({"names": ["x"]})


def test_a_known_name_with_fields_that_it_has_not_is_refused():
    with pytest.raises(ValueError, match=r"Discrete cannot be made: .*colour"):
        from_table({"type": "Discrete", "n": 3, "colour": "red"})
    with pytest.raises(ValueError, match=r"Discrete cannot be made: .*missing"):
        from_table({"type": "Discrete"})


def test_a_known_name_with_values_that_it_refuses_is_refused():
    with pytest.raises(ValueError, match="n must be a whole number"):
        from_table({"type": "Discrete", "n": -3})
    with pytest.raises(ValueError):
        from_table({"number": "many"})


def test_a_class_becomes_known_by_its_name():
    @registered("test")
    @dataclass(frozen=True)
    class OnlyInThisTest:
        a: int
        b: tuple = ()

    value = OnlyInThisTest(1, (2, OnlyInThisTest(3)))
    assert through_text([value]) == (value,)


def test_coordinates_given_as_lists_are_the_same_labels():
    """Otherwise data that were saved do not go on: their spaces are not those of the world."""
    labels = rf.Discrete(2, "s", [[0.0], [1.0]])
    assert through_text(labels) == labels


def test_actions_are_given_in_the_dtype_of_the_system():
    box = replace(rf.Box.of(u=(-1, 1)), dtype="float32")
    assert box == rf.Box.of(u=(-1, 1)) and repr(box) == repr(rf.Box.of(u=(-1, 1)))
    assert box.as_taken(np.zeros((2, 1))).dtype == np.float32
    assert from_table(to_table(box)).dtype == "float32"
    assert rf.Discrete(3).as_taken(np.arange(3)).dtype == np.int64
    for wrong in ("object", "V8", "no such", None):
        with pytest.raises(ValueError, match="dtype must be one of float16, float32"):
            replace(box, dtype=wrong)
