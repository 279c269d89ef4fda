"""Table of all tasks, by the name that the command line, `config.toml` and `heedful.json` use."""

from collections.abc import Mapping
from typing import Any, Final

from heedful.errors import UsageError, did_you_mean
from heedful.tasks.answering import AnsweringTask
from heedful.tasks.captioning import CaptioningTask
from heedful.tasks.classification import ClassificationTask
from heedful.tasks.interface import Task
from heedful.tasks.translation import TranslationTask

TASKS: Final[Mapping[str, Task[Any, Any]]] = {
    "translation": TranslationTask(),
    "classification": ClassificationTask(),
    "captioning": CaptioningTask(),
    "answering": AnsweringTask(),
}


def find_task(name: str) -> Task[Any, Any]:
    """Return a task by name.

    Args:
        name: key of `TASKS`.

    Raises:
        UsageError: there is no such task.
    """
    if name not in TASKS:
        raise UsageError(f"--task {name}: no such task{did_you_mean(name, TASKS)}")
    return TASKS[name]
