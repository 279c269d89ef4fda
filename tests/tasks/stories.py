"""Generated stories and small settings, for tests of question answering."""

from pathlib import Path

from heedful.synthetic.facts import NumSupporting, generate
from heedful.synthetic.notices import generate as generate_notices


def write_stories(path: Path, number: int = 400, seed: int = 0, num_supporting: NumSupporting = 1) -> Path:
    """Write stories as lines of JSON."""
    stories = generate(number, num_supporting, seed)
    path.write_text("".join(f"{story.to_json()}\n" for story in stories), encoding="utf-8")
    return path


SETTINGS = (
    "model.hidden_size=16",
    "training.batch_tokens=1024",
    "training.validate_every=20",
    "training.precision=float32",
    "training.export=false",
    "training.optimizer.learning_rate=0.02",
    "training.optimizer.schedule.warmup_steps=5",
)


def write_notices(path: Path, number: int = 300, seed: int = 0) -> Path:
    """Write notices, whose answers are spans, as lines of JSON."""
    path.write_text("".join(f"{story.to_json()}\n" for story in generate_notices(number, seed)), encoding="utf-8")
    return path


SPAN_SETTINGS = (
    *SETTINGS,
    "text.source_units=words",
    "model.embedding_size=16",
    "model.num_layers=1",
    "model.dropout=0",
)
