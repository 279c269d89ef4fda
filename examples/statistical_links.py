"""Link the words of test pairs by a statistical aligner, where no one has linked them by hand.

python examples/statistical_links.py links.gold train.de train.en --of test.de test.en
heedful compare examples/compare_normalizers.toml train.de train.en --test test.de --test test.en --gold links.gold

IBM model 1 of all pairs in both directions: links that both have are sure, those that grow-diag adds are possible. An
error rate against such links compares models with each other; it says nothing of how far they are from a person.
"""

import argparse
from pathlib import Path

from heedful.data.corpus import find_pairs
from heedful.text.links import Links
from heedful.text.word_alignment import align_pairs


def words_of(text: str) -> list[str]:
    return [word for word in text.lower().split(" ") if word]


def gold_line(sure: Links, possible: Links) -> str:
    return " ".join(
        f"{left}{'-' if (left, right) in sure else 'p'}{right}" for left, right in sorted({*sure, *possible})
    )


def main(output: Path, files: list[Path], linked: list[Path]) -> None:
    wanted = [*find_pairs(linked)]
    pairs = [(words_of(pair.source), words_of(pair.target)) for pair in (*wanted, *find_pairs(files))]
    sure, possible = (align_pairs(pairs, method)[: len(wanted)] for method in ("intersection", "grow-diag"))
    lines = "".join(f"{gold_line(*links)}\n" for links in zip(sure, possible, strict=True))
    output.write_text(lines, encoding="utf-8", newline="\n")
    print(f"{output}: {sum(map(len, sure)):,} sure links of {len(wanted):,} pairs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Link the words of test pairs by IBM model 1.")
    parser.add_argument("output", type=Path)
    parser.add_argument("files", type=Path, nargs="+", help="one file of pairs, or two aligned ones, to learn from")
    parser.add_argument("--of", type=Path, nargs="+", required=True, help="the pairs to link, in as many files")
    options = parser.parse_args()
    main(options.output, options.files, options.of)
