"""Array types and namespaces, and the checks of every array and number that a caller gives."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import array_api_compat
import array_api_compat.numpy
import numpy as np
import numpy.typing as npt

#: Real numbers, of any shape (...).
Floats: TypeAlias = npt.NDArray[np.float64]
#: Whole numbers, of any shape (...).
Integers: TypeAlias = npt.NDArray[np.int64]
#: True or False, of any shape (...).
Flags: TypeAlias = npt.NDArray[np.bool_]
#: n states: their coordinates (n,d), or labels (n,).
States: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.int64]
#: n actions: their coordinates (n,a), or labels (n,).
Actions: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.int64]
#: What a plan does: one action, a label or coordinates (a,); or n of them, (n,) or (n,a).
Chosen: TypeAlias = int | Actions
#: What values are at one state, or at n of them, (n,).
Values: TypeAlias = float | Floats
#: What NumPy accepts as a dtype, of no shape; rewardfree computes in float64 and float32 only.
DType: TypeAlias = npt.DTypeLike
#: A NumPy array, a torch tensor, or any other array of the Python array API standard, of any shape (...).
Array: TypeAlias = Any


@dataclass(frozen=True)
class Placement:
    """The device and the dtype of arrays. None means the CPU, and the dtype of the given arrays."""

    device: str | None = None
    dtype: DType | None = None

    @property
    def default(self) -> bool:
        """Whether a user asked for neither another device nor a dtype."""
        return is_cpu(self.device) and self.dtype is None


#: The longest episode; a larger number is taken for a typing error.
MOST_STEPS = 10**9

#: As far as a variable of a system may go: squares of larger numbers would overflow.
FARTHEST_STATE = 1e100

#: The default placement.
CPU = Placement()


def is_cpu(device: str | None) -> bool:
    """Whether arrays are made by NumPy there."""
    return device in (None, "cpu")


def check_counts_on(device: str | None, who: str) -> None:
    """Refuse a device for what counts visits."""
    if not is_cpu(device):
        raise ValueError(f'{who} counts visits, on the CPU: leave device= out, got "{device}"')


def namespace(*arrays: Array) -> Any:
    """The array-API namespace that the given arrays share."""
    if all(type(array) is np.ndarray for array in arrays):  # the common case, in hot loops
        return array_api_compat.numpy
    return array_api_compat.array_namespace(*arrays)


def to_numpy(values: Array) -> Any:
    """`values` as a NumPy array on the CPU."""
    return np.asarray(values.detach().cpu() if array_api_compat.is_torch_array(values) else values)


def clip(values: Array, low: Any, high: Any) -> Array:
    """min(max(values, low), high); the array API's clip is many times slower in loops."""
    if type(values) is np.ndarray:
        return np.minimum(np.maximum(values, low), high)
    if array_api_compat.is_torch_array(values):
        return values.clamp(low, high)
    return namespace(values).clip(values, low, high)


def at_least_zero(values: Array) -> Array:
    """max(values, 0)."""
    return values.clamp_min(0.0) if array_api_compat.is_torch_array(values) else np.maximum(values, 0.0)


def float_dtype(dtype: Any) -> Any:
    """`dtype` as NumPy's float64 or float32; any other type is refused."""
    try:
        float_type = np.dtype(dtype)
    except TypeError:
        float_type = None
    if float_type not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
    return float_type


def cast(values: Any, dtype: Any) -> Any:
    """`values` as a NumPy array of this dtype, copied only if needed. What overflows becomes infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype)


def as_array(values: Any, name: str) -> Array:
    """`values` as a real floating array; lists and integers become NumPy float64."""
    if not array_api_compat.is_array_api_obj(values):
        try:
            values = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{name} must be an array of numbers, got {type(values)}") from error
    xp = namespace(values)
    if xp.isdtype(values.dtype, ("integral", "bool")):
        values = xp.astype(values, xp.float64)
    if values.dtype not in (xp.float64, xp.float32):
        raise ValueError(f"{name} must be float64 or float32, got {values.dtype}")
    return values


def check_finite(values: Array, name: str) -> None:
    """Refuse NaN and infinities, and say how many there are."""
    finite = namespace(values).isfinite(values)
    xp = namespace(finite)
    if not bool(xp.all(finite)):
        bad = int(xp.sum(xp.astype(~finite, xp.int64)))
        size = math.prod(values.shape)
        raise ValueError(
            f"{name} must be finite, got {bad} NaN or infinite of {size} values in {values.dtype}"
        )


def check_reach(values: Any, name: str) -> None:
    """Refuse values of variables beyond what regressions can square."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest >= FARTHEST_STATE:
        raise ValueError(f"{name} must stay below {FARTHEST_STATE:g}, got {largest:g}")


def as_names(values: Any, name: str) -> tuple[str, ...]:
    """`values` as names: any number of texts, one after the other; one text alone is refused."""
    try:
        names = () if isinstance(values, str) else tuple(values)
    except TypeError:
        names = (values,)
    if isinstance(values, str) or not all(isinstance(each, str) for each in names):
        example = f": write [{values!r}]" if isinstance(values, str) else ""
        raise ValueError(f"{name} must be a list of names, got {values!r:.200}{example}")
    return names


def as_points(values: Any, name: str = "points", dim: int | None = None) -> Array:
    """`values` as finite points (n,d). A flat list is refused: it could be n points or d coordinates."""
    points = as_array(values, name)
    if points.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n, d), got {tuple(points.shape)}: "
            "for n points in one dimension use x.reshape(-1, 1)"
        )
    if points.shape[1] == 0:
        raise ValueError(f"{name} must have at least one coordinate, got shape {tuple(points.shape)}")
    if dim is not None and points.shape[1] != dim:
        raise ValueError(f"{name} must have {dim} coordinates, got {points.shape[1]}")
    check_finite(points, name)
    return points


def as_targets(values: Any, n: int, dtype: Any) -> Any:
    """`values` as finite targets of n points in NumPy: one column (n,), or c columns (n,c)."""
    targets = cast(targets_of(values, n), dtype)
    check_finite(targets, "targets")
    return targets


def targets_of(values: Any, n: int) -> Array:
    """`values` as targets of n points: one column (n,), or c columns (n,c)."""
    targets = as_array(values, "targets")
    if targets.ndim not in (1, 2) or targets.shape[0] != n:
        raise ValueError(
            f"targets must have shape ({n},) or ({n}, c), one per point in the order of extend, "
            f"got {tuple(targets.shape)}"
        )
    return targets


def even_points(side: int, dim: int) -> Floats:
    """All points of a regular grid on [0,1]^dim, (side**dim, dim), the last coordinate fastest."""
    axes = [np.linspace(0.0, 1.0, side)] * dim
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)


def positive(value: Any, name: str) -> float:
    """`value` as a finite float above zero."""
    number = as_number(value, name)
    if not number > 0.0:
        raise ValueError(f"{name} must be positive, got {value}")
    return number


def non_negative(value: Any, name: str) -> float:
    """`value` as a finite float of at least zero."""
    number = as_number(value, name)
    if number < 0.0:
        raise ValueError(f"{name} must be at least 0, got {value}")
    return number


def as_number(value: Any, name: str) -> float:
    """`value` as a finite float."""
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a number, got {value!r}") from error
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value}")
    return number


def check_kind(value: Any, kind: type, name: str, wanted: str) -> None:
    """Refuse a value that is not an instance of `kind`."""
    if isinstance(value, type):
        raise ValueError(
            f"{name} must be {wanted}, got the class {value.__name__}: make one, {value.__name__}()"
        )
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {wanted}, got {value!r:.200}")


def count(value: Any, name: str, at_least: int = 1, at_most: int | None = None) -> int:
    """`value` as a whole number of at least `at_least`, and of at most `at_most` where that is given."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a whole number, got {value!r:.100}") from error
    if number != value or isinstance(value, bool) or number < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r:.100}")
    if at_most is not None and number > at_most:
        raise ValueError(f"{name} must be at most {at_most:,}, got {value!r:.100}")
    return number


def check_fields(frozen: Any, /, **checks: Callable[[Any, str], Any]) -> None:
    """Store what check(value, name) returns in these fields of a frozen dataclass, as far as it has them.

    None stays where it is the default: it was not given.
    """
    fields = vars(frozen)
    for name in [name for name in checks if name in fields]:
        if fields[name] is not None or getattr(type(frozen), name, ...) is not None:
            object.__setattr__(frozen, name, checks[name](fields[name], name))


def counted(number: int, noun: str) -> str:
    """A number of things in words: "1 episode", "20 episodes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_horizon(value: Any, name: str = "horizon") -> int:
    """`value` as the steps of an episode."""
    return count(value, name, at_most=MOST_STEPS)


def as_discount(value: Any, name: str = "discount") -> float:
    """`value` as what later rewards are multiplied with."""
    number = as_number(value, name)
    if not 0.0 < number <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {number}")
    return number


def probability(value: Any, name: str) -> float:
    """`value` as a float strictly between 0 and 1."""
    number = as_number(value, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")
    return number
