"""Table of all tasks, by the name that the command line, `config.toml` and `heedful.json` use."""

from collections.abc import Mapping
from typing import Any, Final

from heedful.errors import UsageError, did_you_mean
from heedful.tasks.answering import Answering
from heedful.tasks.captioning import Captioning
from heedful.tasks.classification import Classification
from heedful.tasks.interface import Task
from heedful.tasks.translation import Translation

TASKS: Final[Mapping[str, Task[Any, Any]]] = {
    "translation": Translation(),
    "classification": Classification(),
    "captioning": Captioning(),
    "answering": Answering(),
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
