"""Kept spans in JavaScript: the same as in Python, and put back in the same places."""

import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from heedful.export.javascript_patterns import javascript_pattern
from heedful.text.kept import find_kept, kept_rules
from heedful.text.kept_places import lift, put_back
from heedful.text.scripts import script_table
from tests.js.node import NODE, PACKAGE, changed_package
from tests.text.kept_cases import CASES, ORDINARY, SCRIPTS

KNOWN: Final = ("Han", "Latin")
SCRIPT: Final = """
const texts = [];
for await (const chunk of process.stdin) texts.push(chunk);
const { folders, rules, known, table, each } = JSON.parse(Buffer.concat(texts).toString());
const found = [];
for (const folder of folders) {
  const { KeptRules, lift, putBack } = await import(`file://${folder}/kept.js`);
  const { Scripts } = await import(`file://${folder}/scripts.js`);
  const scripts = new Scripts(table), kept = new KeptRules({ rules, known }, scripts);
  found.push(each.map((text) => {
    const spans = kept.find(text), lifted = lift(text, spans);
    const found = spans.map(({ start, end, kind }) => [text.slice(start, end), kind]);
    return [found, putBack(lifted, lifted.text, [], scripts)];
  }));
}
console.log(JSON.stringify(found));
"""
MUTANTS: Final = (
    ("isMark && start >= 0 && end === place", "false"),
    ("isMark ? '' : ", ""),
    ("\\\\p{M}", ""),
    ("|[™®]", ""),
    ("[^/!?%]", "[^/!?]"),
)
"""Expressions of `kept.js` with others in their place that make it wrong."""


def texts() -> Iterator[str]:
    whole = [*(text for text, _ in (*CASES, *SCRIPTS)), *ORDINARY]
    yield from whole
    words = [word for text in whole for word in text.split()]
    source = random.Random(0)
    for _ in range(300):
        yield source.choice(("", " ", " ", "\n", "、")).join(source.choices(words, k=source.randrange(1, 9)))


def in_python(text: str) -> list[object]:
    spans = find_kept(text, knows=KNOWN.__contains__)
    lifted = lift(text, spans)
    return [
        [[text[one.start : one.end], one.kind] for one in spans],
        put_back(lifted, lifted.text, ())[0],
    ]


def in_javascript(folders: Sequence[Path]) -> list[list[object]]:
    rules = {kind: javascript_pattern(pattern) for kind, pattern in kept_rules().items()}
    given = {"folders": [*map(str, folders)], "rules": rules, "known": KNOWN, "table": script_table()}
    done = subprocess.run(
        [str(NODE), "--input-type=module", "-e", SCRIPT],
        input=json.dumps(given | {"each": [*texts()]}),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_spans_and_their_places_are_those_of_python_and_wrong_rules_are_told_from_right_ones(tmp_path: Path):
    folders = [changed_package(tmp_path / str(index), "kept.js", *one) for index, one in enumerate(MUTANTS)]
    right, *wrong = in_javascript([PACKAGE, *folders])
    ours = [*map(in_python, texts())]
    assert [pair for pair in zip(ours, right, strict=True) if pair[0] != pair[1]] == []
    assert [mutant for mutant, one in zip(MUTANTS, wrong, strict=True) if one == right] == []
