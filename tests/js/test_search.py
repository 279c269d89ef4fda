"""Search in JavaScript: the same hypotheses as in Python, over tables with many equal log probabilities."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.search.array_scores import ArrayScores
from heedful.search.beam import search
from heedful.search.interface import Engine, StepScores
from heedful.text.vocabulary import EOS
from tests.js.hypotheses import SEARCHES, config_of, differences
from tests.js.node import PACKAGE, Run, answers, changed_package, needs_node

pytestmark = needs_node

VOCABULARY, LENGTH, NUM_TABLES = 8, 12, 12


class Table(NamedTuple):
    """Log probabilities and weights of the next token by step and token, and a source."""

    log_probs: NDArray[np.float32]
    weights: NDArray[np.float32]
    source: list[int]
    prefix: list[int]


class TableEngine(Engine):
    def __init__(self, table: Table) -> None:
        self.table = table

    def start(self, inputs: Any, num_hypotheses: int) -> object:
        return 0

    def step(self, state: Any, tokens: Any, parents: Any, keep: Any) -> tuple[StepScores, object]:
        return ArrayScores(self.table.log_probs[state][tokens], self.table.weights[state][tokens]), state + 1


def tables() -> list[Table]:
    generator = np.random.default_rng(0)
    drawn: list[Table] = []
    for number in range(NUM_TABLES):
        # Few different values, so that many candidates are equal; some tokens are impossible.
        log_probs = -generator.integers(1, 12, (LENGTH, VOCABULARY, VOCABULARY)) / 4
        log_probs[generator.random(log_probs.shape) < 0.1] = -np.inf
        log_probs[..., EOS] -= number % 3
        source = [*generator.integers(4, 9, generator.integers(1, 9)).tolist(), EOS]
        weights = generator.dirichlet(np.ones(len(source)), (LENGTH, VOCABULARY))
        prefix = generator.integers(4, VOCABULARY, number % 4 // 2).tolist()
        drawn.append(Table(log_probs.astype(np.float32), weights.astype(np.float32), source, prefix))
    return drawn


def run(folder: Path = PACKAGE) -> Run:
    facts = {"units": "words", "normalization": "none", "tokens": ["<pad>", "<unk>", "<bos>", "<eos>"], "most": 9}
    calls: list[list[Any]] = []
    for table in tables():
        rows = np.where(
            np.isinf(table.log_probs), None, table.log_probs.astype(object)
        ).tolist()  # JSON has no infinity
        for kind in SEARCHES:
            settings = config_of(kind).model_dump(mode="json")
            calls.append(["table", rows, table.weights.tolist(), table.source, settings, {"prefix": table.prefix}])
    return Run(facts, calls, folder)


def in_python() -> list[Any]:
    return [
        search(
            TableEngine(table),
            [np.array(table.source)],
            config_of(kind),
            max_length=LENGTH,
            need_alignment=True,
            prefixes=[table.prefix],
        )[0]
        for table in tables()
        for kind in SEARCHES
    ]


# Expressions of the module, each with one in its place that makes it wrong.
MUTANTS = (
    ("one.slot - other.slot || one.token - other.token", "other.token - one.token"),
    ("best[index - 1].logProb < logProb", "best[index - 1].logProb > logProb"),
    ("size > 1 ? size + 1 : 1) + (", "1) + ("),
    ("size > 1 ? 2 * size : 1", "size"),
    ("finished.length >= config.beam && nth", "nth"),
    ("nth(scores, config.beam - 1)", "nth(scores, 0)"),
    ("lengthScore(bestLive, limit, config)", "lengthScore(bestLive, length, config)"),
    ("counted ** config.alpha;", "counted;"),
    ("(5 + counted) / 6", "(5 + counted) / 5"),
    ("config.length_reward * length", "config.length_reward"),
    ("index >= size - 1 && ", "index >= size && "),
    ("step < config.min_length", "step <= config.min_length"),
    ("logProb * (1 - config.repetition_penalty)", "0"),
    ("config.forbid_unknown ? [UNK] : []", "[]"),
    ("Math.min(Math.max(each, SMALLEST_COVERAGE), 1)", "Math.max(each, SMALLEST_COVERAGE)"),
    ("prefix[step] ?? -1", "-1"),
    ("slot * scores.width, (slot + 1) * scores.width", "0, scores.width"),
    ("ids.slice(0, -1) : ids", "ids : ids"),
)


def test_hypotheses_are_those_of_python_and_wrong_searches_are_told_from_right_ones(tmp_path: Path):
    folders = [changed_package(tmp_path / str(index), "search.js", *one) for index, one in enumerate(MUTANTS)]
    answered = iter(answers(*map(run, (PACKAGE, *folders))))
    expected = in_python()
    found = [differences(expected, [next(answered) for _ in expected]) for _ in (PACKAGE, *folders)]
    assert found[0] == []
    assert [mutant for mutant, complaints in zip(MUTANTS, found[1:], strict=True) if not complaints] == []
    reasons = {one.finish_reason for each in expected for one in each}
    assert reasons >= {"eos", "length"}
