"""Write files of pairs to try things out with: dates and numbers as people write them, and their canonical forms.

python examples/write_pairs.py
"""

from pathlib import Path

from heedful.synthetic.corpus import generate


def main(folder: Path = Path(), num_pairs: int = 20_000) -> None:
    for name, split, count in (("pairs.tsv", "train", num_pairs), ("test.tsv", "test", num_pairs // 40)):
        rows = (f"{source}\t{target}\n" for source, target in generate(count, seed=1, split=split))
        (folder / name).write_text("".join(rows), encoding="utf-8", newline="\n")
        print(f"{count:,} pairs in {folder / name}")


if __name__ == "__main__":
    main()
