"""Checks of the answers to the exercises of the course."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.course.exercise import Exercise, Words
from heedful.course.exercises import EXERCISES
from heedful.errors import UsageError, did_you_mean


def check(name: str, answer: Any) -> None:
    """Check an answer to an exercise, and print whether it is right or what to look at.

    Args:
        name: lesson and exercise, such as "averages.mean".
        answer: number, list, array, tensor or function, as the exercise asks; `...` = none yet.

    Raises:
        UsageError: there is no such exercise.

    Example:
        >>> check("averages.mean", 3)
        averages.mean: right 正确
        >>> check("averages.mean", 2)
        averages.mean: the mean, not the median 要平均数，不是中位数
    """
    print(f"{name}: {' '.join(remark_on(name, answer) or ('right', '正确'))}")


def hint(name: str) -> None:
    """Print the hint of an exercise.

    Args:
        name: lesson and exercise.

    Raises:
        UsageError: there is no such exercise.

    Example:
        >>> hint("averages.mean")
        Average pooling does not look at x.
        平均池化不看 x。
    """
    print("\n".join(_named(name).hint))


def remark_on(name: str, answer: Any) -> Words | None:
    """Find out whether an answer is right.

    Args:
        name: lesson and exercise.
        answer: as for `check`.

    Returns:
        None if it is right; otherwise a sentence that helps, in English and Chinese.

    Raises:
        UsageError: there is no such exercise.
    """
    return _remark(_named(name), answer)


def _named(name: str) -> Exercise:
    if name not in EXERCISES:
        raise UsageError(f"no exercise {name!r}{did_you_mean(name, EXERCISES)}")
    return EXERCISES[name]


def _remark(exercise: Exercise, answer: Any) -> Words | None:
    """Sentence about a wrong answer; None = it is right."""
    if answer is None or answer is ...:
        return "no answer yet", "还没有答案"
    if exercise.inputs is None:
        return _compared(exercise, answer, exercise.answer, [mistake.answer for mistake in exercise.mistakes])
    if not callable(answer):
        return f"give the function itself, not {type(answer).__name__}", "请传入函数本身"
    arguments = exercise.inputs()
    try:
        result = answer(*(_copied(argument) for argument in arguments))
    except Exception as error:  # of the reader's own code, whatever it is
        return f"your function raised {type(error).__name__}: {error}", "你的函数出错了"
    return _compared(
        exercise, result, exercise.answer(*arguments), [mistake.answer(*arguments) for mistake in exercise.mistakes]
    )


def _compared(exercise: Exercise, answer: Any, right: Any, usual: list[Any]) -> Words | None:
    wanted = _array(right)
    try:
        numbers = _array(answer)
    except (TypeError, ValueError):
        return f"expected numbers, got {type(answer).__name__}", "这里应该是数"
    if _is_equal(numbers, wanted, exercise.tolerance):
        return None
    for mistake, wrong in zip(exercise.mistakes, usual, strict=True):
        if _is_equal(numbers, _array(wrong), exercise.tolerance):
            return mistake.remark
    if numbers.shape != wanted.shape:
        shapes = f"expected shape {list(wanted.shape)}, got {list(numbers.shape)}"
        return shapes, f"形状应为 {list(wanted.shape)}，得到 {list(numbers.shape)}"
    if not np.isfinite(numbers).all():
        return "there are infinite numbers or NaN in it", "答案里有无穷大或 NaN"
    difference = float(np.abs(numbers - wanted).max())
    return f"off by up to {difference:.3g}; hint(...) helps", f"误差最大为 {difference:.3g}，可以用 hint(...) 看提示"


def _is_equal(numbers: NDArray[np.float64], wanted: NDArray[np.float64], tolerance: float) -> bool:
    return numbers.shape == wanted.shape and bool(np.allclose(numbers, wanted, rtol=tolerance, atol=tolerance))


def _array(value: Any) -> NDArray[np.float64]:
    """Numbers of an array, a tensor, a list or a number.

    Raises:
        TypeError: the value is a text or a truth where numbers are wanted.
        ValueError: the value cannot be read as numbers.
    """
    if isinstance(value, str):
        raise TypeError("a text is no number")
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.float64)


def _copied(argument: Any) -> Any:
    return argument.copy() if isinstance(argument, np.ndarray) else argument
