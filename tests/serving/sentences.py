"""Short German sentences with their English translations, and a small model of them."""

from pathlib import Path

from tests.cli.command import heedful

WORDS = {"Hund": "dog", "Mann": "man", "Frau": "woman", "Katze": "cat", "Kind": "child"}
VERBS = {"schläft": "sleeps", "läuft": "runs", "wartet": "waits", "lacht": "laughs"}
ADVERBS = {"hier": "here", "heute": "today", "gern": "gladly", "nicht": "not", "draußen": "outside"}


def train_sentences(folder: Path) -> Path:
    """Train the model for a few steps: it reads sentences and pieces, and need not be right."""
    rows = [
        f"{word} {verb} {adverb}.\t{WORDS[word]} {VERBS[verb]} {ADVERBS[adverb]}.\n"
        for word in WORDS
        for verb in VERBS
        for adverb in ADVERBS
    ]
    data, out = folder / "sentences.tsv", folder / "sentences.model"
    data.write_text("".join(rows), "utf-8")
    overrides = ["training.max_steps=30", "training.export=false", "training.noise=0.3"]
    overrides += ["text.source_units=pieces", "text.target_units=pieces", "text.vocabulary_size=400"]
    overrides += ["search.max_length_ratio=1", "search.max_length_offset=5"]
    overrides += ["model.num_encoder_layers=1", "model.num_decoder_layers=1"]
    options = ("--languages", "de:en", "--preset", "tiny", *(f"--set={one}" for one in overrides))
    done = heedful("train", data, "--out", out, *options)
    assert done.code == 0, done.errors
    return out
