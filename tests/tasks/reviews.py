"""Made-up reviews whose label follows from their words, for tests of classification."""

import random
from pathlib import Path

GOOD = ("clean", "quiet", "friendly", "bright")
BAD = ("dirty", "noisy", "rude", "dark")
NEUTRAL = ("room", "hotel", "staff", "night", "view", "bed", "door")


def reviews(number: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts with the label of the only telling word in each."""
    source = random.Random(seed)
    rows: list[tuple[str, str]] = []
    for row in range(number):
        words = [source.choice(NEUTRAL) for _ in range(source.randint(1, 7))]
        label = ("good", "bad")[row % 2]
        words.insert(source.randint(0, len(words)), source.choice(GOOD if label == "good" else BAD))
        rows.append((f"{' '.join(words)} {row}", label))
    return rows


def write_reviews(path: Path, number: int = 200, seed: int = 0) -> Path:
    path.write_bytes("".join(f"{text}\t{label}\n" for text, label in reviews(number, seed)).encode())
    return path


SETTINGS = (
    "text.source_units=words",
    "model.embedding_size=8",
    "model.hidden_size=4",
    "training.batch_tokens=256",
    "training.validate_every=20",
    "training.precision=float32",
    "training.export=false",
    "training.optimizer.learning_rate=0.02",
    "training.optimizer.schedule.warmup_steps=5",
)
