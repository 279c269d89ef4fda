"""BLEU and size of a model's engines in eight bits beside those in float32.

    python benchmarks/eight_bits.py MODEL SOURCE TARGET [--beam 5]

Engines are those that `heedful export` put into the model folder; CTranslate2 is asked for greedy search, which it does
as heedful does, the others for --beam.
"""

import argparse
from pathlib import Path

from heedful.cli.options import use_threads
from heedful.data.corpus import find_pairs
from heedful.data.prepare import EvaluationSet
from heedful.predictors.table import load
from heedful.search.config import with_outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    given = parser.parse_args()
    use_threads(0)
    items = EvaluationSet.of(find_pairs([given.source, given.target], (1, 2)))
    exported = load(given.model).backends.exported
    found: dict[str, tuple[float, int]] = {}
    for name in ("onnx", "onnx-int8", "ctranslate2", "ctranslate2-int8"):
        if name not in exported:
            continue
        beam = 1 if name.startswith("ctranslate2") else given.beam
        translator = load(given.model, engine=name)
        search = with_outputs(translator.search, beam)
        (bleu,) = translator.measure(items, ("bleu",), search=search).report.results
        size = sum(path.stat().st_size for path in exported[name].path.iterdir())
        found[name] = (bleu.score, size)
        text = f"{name:18} beam {beam}   BLEU {bleu.score:6.2f}   {size / 1e6:6.1f} MB"
        whole = found.get(name.removesuffix("-int8")) if name.endswith("-int8") else None
        print(text + (f"   {bleu.score - whole[0]:+.2f} BLEU, {size / whole[1]:.0%} of the size" if whole else ""))


if __name__ == "__main__":
    main()
