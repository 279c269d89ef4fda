"""From pairs of texts to a model: train it, translate, look at its attention, measure it.

python examples/train_and_translate.py

The pairs are dates and numbers as people write them, in English and Chinese, with their canonical forms; they are
generated, so nothing is downloaded. Training stops after two minutes; running it again goes on with the same model.
"""

from collections.abc import Mapping
from pathlib import Path

import heedful
from heedful.inspection.plot import save_heat_map, text_heat_map
from heedful.synthetic.corpus import generate

TEXTS = ["March 5th, 2021", "二〇二一年三月五日", "three thousand two hundred and five"]


def main(
    folder: Path = Path("dates-example"), num_pairs: int = 20_000, settings: Mapping[str, object] | None = None
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_pairs(folder / "train.tsv", num_pairs, "train")
    write_pairs(folder / "test.tsv", max(50, num_pairs // 50), "test")

    # As: heedful train train.tsv --out dates.model --preset rnnsearch-tiny --set text.source_units=characters ...
    translator = heedful.train(
        folder / "train.tsv",
        out=folder / "dates.model",
        preset="rnnsearch-tiny",
        settings={
            "text.source_units": "characters",
            "text.target_units": "characters",
            "training.max_minutes": 2.0,
            **(settings or {}),
        },
    )

    for number, found in enumerate(translator.translate(TEXTS, beam=4, nbest=2, attention=True), start=1):
        print(f"\n{found.source} -> {found.text}   (second best: {found.alternatives[-1].text})")
        if found.attention is not None and len(found.attention):
            print(text_heat_map(found.source_pieces, found.target_pieces, found.attention))
            note = save_heat_map(
                folder / f"attention-{number}.png", found.source_pieces, found.target_pieces, found.attention
            )
            print(note or f"drawn in {folder / f'attention-{number}.png'}")

    # A model folder holds all it needs: load it anywhere.
    print(heedful.load(folder / "dates.model").evaluate(folder / "test.tsv").to_text())


def write_pairs(path: Path, num_pairs: int, split: str) -> None:
    rows = (f"{source}\t{target}\n" for source, target in generate(num_pairs, seed=1, split=split))
    path.write_text("".join(rows), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
