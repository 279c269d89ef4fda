"""A model so small that it is trained in a second, shared by all tests of the command line."""

import random
from pathlib import Path

import pytest

from tests.cli.command import Done, heedful

SETTINGS = """
[text]
source_units = "characters"
target_units = "characters"
max_tokens = 24
[model]
kind = "transformer"
num_encoder_layers = 1
num_decoder_layers = 1
model_size = 16
num_heads = 2
feedforward_size = 16
dropout = 0.0
[training]
precision = "float32"
batch_tokens = 256
validate_every = 4
max_steps = 8
export = false
[training.optimizer]
learning_rate = 0.01
[training.optimizer.schedule]
warmup_steps = 400
[search]
beam = 2
max_length_ratio = 1.0
max_length_offset = 4
"""


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def write_pairs(path: Path, num_pairs: int, seed: int = 0) -> Path:
    source = random.Random(seed)
    words = ["".join(source.choice("abcdef") for _ in range(source.randint(2, 8))) for _ in range(num_pairs)]
    path.write_bytes("".join(f"{word}\t{word.upper()}\n" for word in words).encode())
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_bytes(SETTINGS.encode())
    return path


class Trained:
    """The model, how its training ended, and the command that trained it."""

    def __init__(self, folder: Path) -> None:
        self.data = write_pairs(folder / "words.tsv", 150)
        self.data.write_bytes(b"".join(dict.fromkeys(self.data.read_bytes().splitlines(keepends=True))))
        self.config = folder / "tiny.toml"
        self.config.write_bytes(SETTINGS.encode())
        self.model = folder / "words.model"
        self.command = ("train", self.data, "--out", self.model, "--config", self.config)
        self.done: Done = heedful(*self.command)
