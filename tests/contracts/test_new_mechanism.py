"""A score or normalizer added to its table trains in every model: tried on a copy of the package.

What is added is what docs/extending.md shows: one class and one line of a table, and no other file is touched.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.architecture.package import ROOT

PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")

NORMALIZER_MODULE = '''"""Weights that are squares of scores."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from heedful.attention.interface import Normalized, Normalizer


'''

STEP = """
import torch

from heedful.config.base import validate
from heedful.models.inputs import FeatureInputs, TokenInputs
from heedful.models.table import MODELS
from heedful.tasks.answering import AnsweringTask
from heedful.tasks.captioning import CaptioningTask
from heedful.training.pair_step import PairStep

SIZES = {
    "transformer": {"model_size": 16, "num_heads": 2, "feedforward_size": 16},
    "rnnsearch": {"embedding_size": 8, "hidden_size": 8},
    "luong": {"embedding_size": 8, "hidden_size": 8, "init_range": 1.0},
    "hard_attention": {"embedding_size": 8, "hidden_size": 8},
    "show_attend_tell": {"embedding_size": 8, "hidden_size": 8, "annotation_size": 8},
}
KEYS = {"transformer": ("attention", "encoder_attention", "decoder_attention")}
torch.manual_seed(2)
trained = 0
for kind, config in MODELS.items():
    if "attention" not in config.model_fields or kind in AnsweringTask.kinds:
        continue
    for key in KEYS.get(kind, ("attention",)):
        normalizer = "softmax" if kind == "hard_attention" else "squared"  # positions need a distribution
        attention = {"score": "diagonal", "normalizer": normalizer, "projection_size": 8}
        settings = validate(config, {**SIZES[kind], key: attention})
        reads_images = kind in CaptioningTask.kinds
        model = settings.build(5, 0, 0, 0, 9) if reads_images else settings.build(9, 9, False)
        step = PairStep(model, 0.0, kind=FeatureInputs if reads_images else TokenInputs).train()
        scores = [(name, part) for name, part in model.named_parameters() if name.endswith("inner.weight")]
        before = {name: part.detach().clone() for name, part in scores}
        assert before, kind
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        ids, lengths = torch.tensor([[4, 5, 6, 3], [7, 3, 0, 0]]), torch.tensor([4, 2])
        targets = torch.tensor([[2, 4, 5], [2, 6, 7]]), torch.tensor([[4, 5, 3], [6, 7, 3]])
        images = torch.randn(2, 4, 5), lengths
        total = step(*(images if reads_images else (ids, lengths)), *targets).total
        total.backward()
        optimizer.step()
        assert bool(torch.isfinite(total)), (kind, key)
        after = dict(model.named_parameters())
        assert all(bool((after[name] != part).any()) for name, part in before.items()), (kind, key)
        trained += 1
print(trained, "attentions trained")
"""


def example(heading: str) -> str:
    """The first block of Python under a heading of docs/extending.md."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    block = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return re.sub(r"^   ", "", block[1], flags=re.MULTILINE)


def copied(source: str, target: str) -> None:
    """Copy a file, unless it is a temporary one of another process that is gone."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


def test_one_class_and_one_line_train_in_every_model(tmp_path: Path):
    package = tmp_path / "heedful"
    # With what is compiled already: to compile all loops again would take 20 s.
    shutil.copytree(ROOT / "src/heedful", package, copy_function=copied)
    scores, normalizers = package / "attention/scores.py", package / "attention/normalizers.py"
    text = scores.read_text(encoding="utf-8")
    table = text.index("SCORES: Final")
    added = text[:table] + example("A score") + "\n\n" + text[table:]
    scores.write_text(
        added.replace('    "dot": Dot,\n', '    "dot": Dot,\n    "diagonal": Diagonal,\n'), encoding="utf-8"
    )
    (package / "attention/squared.py").write_text(NORMALIZER_MODULE + example("A normalizer"), encoding="utf-8")
    text = normalizers.read_text(encoding="utf-8")
    text = text.replace(
        "from typing import Final\n", "from typing import Final\n\nfrom heedful.attention.squared import Squared\n"
    )
    normalizers.write_text(
        text.replace('    "softmax": Softmax,\n', '    "softmax": Softmax,\n    "squared": Squared,\n'),
        encoding="utf-8",
    )
    found = subprocess.run(
        [sys.executable, "-c", STEP],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == ["7", "attentions", "trained"]
