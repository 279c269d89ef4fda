"""Strings of digits in pictures: a corpus for captioning as a form or a meter shows them.

    python benchmarks/rendered_digits.py digits --number 3300
    heedful train digits/train.tsv --test digits/test.tsv --task captioning --minutes 10 --threads 2 --out digits.model
    heedful evaluate digits.model digits/test.tsv --metrics exact_match

Every picture has four digits in one of five fonts of Matplotlib, at a random place, size, slant and darkness, with
noise and up to two lines through them. The test has 500 more.
"""

import argparse
from pathlib import Path

from PIL import Image

from heedful.synthetic.printed_text import generate_printed_texts

NUM_TEST = 500
SEED = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=3300)
    arguments = parser.parse_args()
    for name, number in (("train", arguments.number), ("test", NUM_TEST)):
        pictures = arguments.folder / name
        pictures.mkdir(parents=True)
        rows: list[str] = []
        for index, each in enumerate(generate_printed_texts(number, SEED, word_share=0.0, split=name)):
            Image.fromarray(each.pixels).save(pictures / f"{index:05}.png")
            rows.append(f"{name}/{index:05}.png\t{each.text}\n")
        (arguments.folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
