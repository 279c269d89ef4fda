"""Reads of one training: settings, an earlier training and a pretrained model are each read once."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.package import SOURCE

# Counts how often the files named in `watched` are opened for reading while `train` runs, and prints the counts.
PROGRAM = """
import collections, json, os, sys
from pathlib import Path
import heedful

counts = collections.Counter()

def count(event, arguments):
    if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
        name = os.path.basename(os.fsdecode(arguments[0])) if not isinstance(arguments[0], int) else ""
        counts[name] += 1

sys.addaudithook(count)

def counted(method):
    def call(*arguments):
        counts["passes"] += 1
        return method(*arguments)
    return call

from heedful.data import check, corpus
corpus.PairFile._note_lines = counted(corpus.PairFile._note_lines)  # called at the end of a file
check._Reading._describe = counted(check._Reading._describe)

def train(out, **options):
    counts.clear()
    heedful.train("pairs.tsv", out=out, config="settings.toml", quiet=True, **options)
    (weights,) = Path("first.model").glob("model-*.safetensors")
    return {"settings": counts["settings.toml"], "earlier": counts["experiment.toml"], "weights": counts[weights.name],
            "passes": counts["passes"]}

first = train("first.model")
resumed = train("first.model", settings={"training.max_steps": 3})
again = train("second.model", origin="first.model")
print(json.dumps([first, resumed, again]))
"""
SETTINGS = """
[training]
max_steps = 2
export = false
[text]
source_units = "characters"
target_units = "characters"
[model]
kind = "rnn_encoder_decoder"
embedding_size = 4
hidden_size = 4
"""


def test_what_a_training_reads_it_reads_once(tmp_path: Path):
    (tmp_path / "pairs.tsv").write_text("".join(f"a{n}\tb{n}\n" for n in range(20_000)), encoding="utf-8")
    (tmp_path / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, resumed, again = json.loads(done.stdout)
    assert [one["settings"] for one in (first, resumed, again)] == [1, 1, 1]
    # The page of the training reads the settings of its own run once more.
    assert [one["earlier"] for one in (first, resumed, again)] == [1, 2, 1]
    # The check, the first reading, and the encoding; units are chosen by the first pairs.
    assert [one["passes"] for one in (first, resumed, again)] == [3, 0, 3]
    assert again["weights"] == 1  # for their hash; safetensors maps them into memory by itself
