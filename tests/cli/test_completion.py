"""Completion in the shell, asked as bash asks."""

import os
import subprocess
import sys

import pytest

from heedful.cli.completion import PRESETS, engines, tasks
from tests.architecture.package import SOURCE
from tests.thorough import sampled


def completions(*words: str) -> list[str]:
    """Completions of the last word; fails if PyTorch is imported."""
    program = (
        "import sys\n"
        "from heedful.cli.main import main\n"
        "try:\n    main([])\n"
        "finally:\n    print('torch' in sys.modules, file=sys.stderr)"
    )
    asked = {"_HEEDFUL_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | asked | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "False\n"
    return done.stdout.split()


@sampled(3)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["heedful", "tr"], ["train", "translate"]),
        (["heedful", "co"], ["correct", "compare"]),
        (["heedful", "correct", "m", "--i"], ["--import"]),
        (["heedful", "train", "x.tsv", "--preset", "lu"], ["luong", "luong-paper"]),
        (["heedful", "train", "--task", "cl"], ["classification"]),
        (["heedful", "list", "m"], ["masks", "models", "metrics"]),
        (
            ["heedful", "evaluate", "m", "t", "--metrics", "bleu,t"],
            ["bleu,ter", "bleu,tokens_in_place", "bleu,tokens_before_error", "bleu,token_error_rate"],
        ),
        (["heedful", "translate", "m", "--engine", "onnx"], ["onnx", "onnx-int8"]),
        (["heedful", "translate", "m", "--device", "c"], ["cpu", "cuda"]),
        (["heedful", "export", "m", "--to", "h"], ["html", "huggingface"]),
        (["heedful", "train", "--preset", "nothing"], []),
    ],
)
def test_completions(words: list[str], expected: list[str]):
    assert completions(*words) == expected


def test_the_names_are_those_of_the_tables():
    from heedful.models import table
    from heedful.tasks.table import TASKS

    assert [*PRESETS] == [*table.PRESETS]
    assert [*tasks()] == [*TASKS]
    assert {*engines()} >= {"auto", "torch", "onnx"}
