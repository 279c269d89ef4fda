"""Make a corpus with links made by hand ready for training and for measuring, and measure what aligns without a model.

python examples/alignment_baselines.py aligned all.en all.cs --gold gold_part.tsv
python examples/alignment_baselines.py aligned zhen.src-tgt --gold zhen.gold --one-based
heedful train aligned/pairs.tsv --dev aligned/dev.tsv --set training.alignment_weight=2 --out aligned.model
heedful align aligned.model aligned/gold.tsv --gold aligned/gold.links

Pairs stand in two aligned files, in one with tabs, or in one with ` ||| ` between source and target. No link made by
hand is learned from: the diagonal, the IBM models and training know the pairs alone.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from heedful.data.corpus import find_pairs
from heedful.evaluation.alignment_error import AlignmentScores, gold_links, score_alignments
from heedful.text.lines import read_lines
from heedful.text.links import GoldLinks, Links
from heedful.text.word_alignment import align_pairs

Pairs = list[tuple[str, str]]


def read_pairs(files: Sequence[Path]) -> Pairs:
    if len(files) == 1 and (lines := [line.split(" ||| ") for line in read_lines(files[0])]) and len(lines[0]) == 2:
        return [(source, target) for source, target in lines]
    return [(pair.source, pair.target) for pair in find_pairs([*files])]


def words_of(text: str) -> list[str]:
    return [word for word in text.lower().split(" ") if word]


def diagonal(num_source: int, num_target: int) -> Links:
    """Link each target word to the source word that stands at the same share of its sentence."""
    return [(round(word * (num_source - 1) / max(1, num_target - 1)), word) for word in range(num_target)]


def baselines(pairs: Pairs, gold: dict[int, GoldLinks]) -> dict[str, AlignmentScores]:
    """Measure the diagonal, and IBM models 1 and 2 of all pairs in both directions, joined by grow-diag."""
    words = [(words_of(source), words_of(target)) for source, target in pairs]
    found = {
        "diagonal": [diagonal(len(source), len(target)) for source, target in words],
        "IBM model 1": align_pairs(words, "grow-diag"),
        "IBM model 2": align_pairs(words, "grow-diag", model="ibm2"),
    }
    return {name: score_alignments([each[i] for i in gold], [*gold.values()]) for name, each in found.items()}


def held_out(num_pairs: int, gold: dict[int, GoldLinks]) -> tuple[list[int], list[int]]:
    """Choose the pairs to train on and those to validate on: of a twentieth, where so many have no links."""
    free = [place for place in range(num_pairs) if place not in gold]
    count = max(10, num_pairs // 20)
    if len(free) < 2 * count:  # all are needed for training, and validation says how well they were learned
        return [*range(num_pairs)], [*range(0, num_pairs, num_pairs // count)]
    dev = {*free[:count]}
    return [place for place in range(num_pairs) if place not in dev], sorted(dev)


def gold_line(links: GoldLinks) -> str:
    return " ".join(f"{left}{'-' if (left, right) in links.sure else 'p'}{right}" for left, right in links.possible)


def main(folder: Path, files: Sequence[Path], gold_file: Path, one_based: bool = False) -> None:
    pairs = read_pairs(files)
    gold = gold_links(gold_file, pairs, one_based)
    train, dev = held_out(len(pairs), gold)
    folder.mkdir(parents=True, exist_ok=True)
    for name, places in (("pairs", train), ("dev", dev), ("gold", gold)):
        rows = "".join("\t".join(pairs[place]) + "\n" for place in places)
        (folder / f"{name}.tsv").write_text(rows, encoding="utf-8", newline="\n")
    lines = "".join(f"{gold_line(links)}\n" for links in gold.values())
    (folder / "gold.links").write_text(lines, encoding="utf-8", newline="\n")
    print(f"{folder}: {len(train):,} pairs to train on, {len(dev):,} to validate on, {len(gold):,} aligned by hand")
    for name, scores in baselines(pairs, gold).items():
        print(f"{name}: {scores}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make a corpus with links made by hand ready.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="+", help="one file of pairs, or two aligned ones")
    parser.add_argument("--gold", type=Path, required=True, help="links, in any notation heedful align knows")
    parser.add_argument("--one-based", action="store_true", help="their words are counted from 1")
    given = parser.parse_args()
    main(given.folder, given.files, given.gold, given.one_based)
