"""Translation of unsegmented text: attention by softmax, by independent choices and by a linear chain.

    python benchmarks/segmentation.py write segments
    alias train='heedful train segments/train.tsv --dev segments/dev.tsv --preset luong --config segments/settings.toml'
    train --out softmax.model --threads 1
    train --out sigmoid.model --set model.attention.normalizer=sigmoid --threads 1
    train --out chain.model --set model.attention.normalizer=linear_chain --threads 1
    python benchmarks/segmentation.py score softmax=softmax.model sigmoid=sigmoid.model chain=chain.model

After Kim et al. 2017, section 4.2. `score` prints, over all test texts, the percentage of targets that are right, of
words that are right where they stand, and of attention that lies inside the characters of the word (where the target is
right); and the two-sided p of the difference in right words between each model and the one before it, by sign flips of
the differences. Several models after one name (`chain=a.model,b.model`) are averaged. Decoding is greedy.

    python benchmarks/segmentation.py draw attention.png softmax=softmax.model chain=chain.model

`draw` draws the attention of the models to the first test text of `DRAWN_WORDS` words that all of them translate right.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.inspection.plot import save_heat_map
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.synthetic.segments import UnsegmentedText, generate

NUM_TRAIN, NUM_DEV, NUM_TEST = 6_000, 200, 1_000
NUM_WORDS = (3, 4, 5, 6, 7, 8)
SETTINGS = """[text]
source_units = "characters"
target_units = "words"

[model]
num_layers = 1
embedding_size = 32
hidden_size = 64
is_bidirectional = true
is_source_reversed = false
dropout = 0.1
output_dropout = 0.1

[model.attention]
window = "global"

[training]
batch_tokens = 1024
label_smoothing = 0.0
max_steps = 3000
validate_every = 500
patience = 1000
export = false

[training.optimizer]
learning_rate = 0.005
[training.optimizer.schedule]
warmup_steps = 100
"""
NUM_FLIPS = 10_000
DRAWN_WORDS = 4


def test_set() -> list[UnsegmentedText]:
    return [*generate(NUM_TEST, NUM_WORDS, seed=2)]


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    seen = {text.source for text in test_set()}
    drawn = [text for text in generate(2 * (NUM_TRAIN + NUM_DEV), NUM_WORDS, seed=1) if text.source not in seen]
    parts = {"dev": drawn[:NUM_DEV], "train": drawn[NUM_DEV : NUM_DEV + NUM_TRAIN], "test": test_set()}
    for name, texts in parts.items():
        lines = [f"{text.source}\t{text.target}\n" for text in texts]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "settings.toml").write_text(SETTINGS, encoding="utf-8")


def figures(model: Path, texts: list[UnsegmentedText]) -> NDArray[np.float64]:
    """For each text: whether the target is right, the share of right words, the share of attention inside the word."""
    results = load(model, kind=Translator).translate([text.source for text in texts], beam=1, attention=True)
    rows: list[tuple[float, float, float]] = []
    for result, text in zip(results, texts, strict=True):
        produced, wanted = result.text.split(), text.target.split()
        right = sum(mine == theirs for mine, theirs in zip(produced, wanted, strict=False))
        inside = np.nan
        if produced == wanted and result.attention is not None:
            shares = [
                row[start:stop].sum() / max(row[: len(text.source)].sum(), 1e-9)
                for row, (start, stop) in zip(result.attention, text.spans, strict=False)
            ]
            inside = float(np.mean(shares))
        rows.append((float(produced == wanted), right / len(wanted), inside))
    return np.array(rows)


def draw(path: Path, rows: list[str]) -> None:
    names, models = zip(*(row.split("=") for row in rows), strict=True)
    for text in (text for text in test_set() if len(text.spans) == DRAWN_WORDS):
        results = [
            load(Path(each), kind=Translator).translate([text.source], beam=1, attention=True)[0] for each in models
        ]
        if all(result.text == text.target for result in results):
            maps = [
                result.attention[:DRAWN_WORDS, : len(text.source)] for result in results if result.attention is not None
            ]
            labels = [f"{word} {name}" for name in names for word in text.target.split()]
            save_heat_map(path, [*text.source], labels, np.concatenate(maps))
            print(text.source, text.target, sep="\n")
            return


def p_value(difference: NDArray[np.float64]) -> float:
    """Two-sided p of a mean of paired differences, by random flips of their signs."""
    random = np.random.default_rng(1)
    observed = abs(difference.mean())
    flips = [abs((difference * random.choice((-1.0, 1.0), len(difference))).mean()) for _ in range(NUM_FLIPS)]
    return (1 + sum(flip >= observed - 1e-12 for flip in flips)) / (1 + NUM_FLIPS)


def score(rows: list[str]) -> None:
    texts = test_set()
    before: NDArray[np.float64] | None = None
    print("| row | seeds | right targets % | right words % | attention inside the word % | p |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        name, _, models = row.rpartition("=")
        values = np.stack([figures(Path(model), texts) for model in models.split(",")])
        by_model = 100 * np.nanmean(values, axis=1)
        mean = values[:, :, 1].mean(axis=0)
        spread = [f" ± {column.std(ddof=1):.1f}" if len(column) > 1 else "" for column in by_model.T]
        cells = [f"{column.mean():.1f}{width}" for column, width in zip(by_model.T, spread, strict=True)]
        p = "-" if before is None else f"{p_value(mean - before):.4f}"
        print(f"| {name or models} | {len(values)} | " + " | ".join(cells) + f" | {p} |", flush=True)
        before = mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("folder", type=Path)
    scoring = commands.add_parser("score")
    scoring.add_argument("models", nargs="+", help="NAME=MODEL,MODEL...")
    drawing = commands.add_parser("draw")
    drawing.add_argument("path", type=Path)
    drawing.add_argument("models", nargs="+", help="NAME=MODEL")
    options = parser.parse_args()
    if options.command == "write":
        write(options.folder)
    elif options.command == "draw":
        draw(options.path, options.models)
    else:
        score(options.models)


if __name__ == "__main__":
    main()
