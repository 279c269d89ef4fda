"""Measures of influence compared: how well they find the words that people link, and the words that a model needs.

python benchmarks/measures.py align zh-1,2.model zh/gold.tsv zh/gold.links --turned zh-2,1.model
python benchmarks/measures.py delete deen.model val.de val.en --lines 100

`align` links words by each measure, at the decoder step that predicts a target word and at the step that reads it, in
one direction and, with the model of the other direction, in both (grow-diag). A choice of measure and step may be made
on every other pair, from the first; the error rate of the rest is reported beside it. `--pairs 80` measures an evenly
spaced sample: gradients need a backward pass for each word.

`delete` replaces source words by an unknown word, in the order of a measure for each target word, and reports the
probability of the target word: its area under the curve from no word to all words, as a share of the probability with
the whole source. The lower the area, the better the measure knows which words the model needs. Random orders stand
beside it.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import heedful
from heedful.data.corpus import find_pairs
from heedful.engines.scored_pairs import word_links
from heedful.errors import UsageError
from heedful.evaluation.alignment_error import gold_links, score_alignments
from heedful.inspection.measures.table import MEASURES, source_shares, why_not
from heedful.models.inputs import TokenInputs
from heedful.predictors.translator import Translator
from heedful.search.inputs import as_inputs
from heedful.text.links import Links, combine_links, merge_weights
from heedful.text.vocabulary import BOS, EOS, UNK

STEPS = ("predicts", "reads")
SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Shares of the source words that are replaced."""
BATCH = 128

Pairs = Sequence[tuple[str, str]]


def load(path: Path) -> Translator:
    predictor = heedful.load(path, engine="torch")
    if not isinstance(predictor, Translator):
        raise UsageError(f"{path}: not a model of translation")
    return predictor


def tokens(translator: Translator, source: str, target: str) -> tuple[list[int], list[int]]:
    most = translator.text.max_tokens - 1
    return (
        [*translator.source_tokenizer.encode(source)[:most], EOS],
        [*translator.target_tokenizer.encode(target)[:most], EOS],
    )


def matrices(translator: Translator, pairs: Pairs, measure: str) -> Iterator[NDArray[np.float32]]:
    """Shares [target token, source token] of each pair."""
    model = translator.model()
    for source, target in pairs:
        source_ids, target_ids = tokens(translator, source, target)
        yield source_shares(model, as_inputs([np.array(source_ids)]), target_ids, measure)


def links_of(translator: Translator, pairs: Pairs, measure: str) -> dict[str, list[Links]]:
    """Links (source word, target word) of each pair, by the decoder step whose row aligns a target word."""
    links: dict[str, list[Links]] = {step: [] for step in STEPS}
    for (source, target), shares in zip(pairs, matrices(translator, pairs, measure), strict=True):
        source_ids, target_ids = tokens(translator, source, target)
        source_words = translator.source_tokenizer.word_indices(source_ids[:-1])
        target_words = translator.target_tokenizer.word_indices(target_ids[:-1])
        for later, step in enumerate(STEPS):
            links[step].append(word_links(shares[later:], source_words, target_words))
    return links


def align(arguments: argparse.Namespace) -> None:
    pairs = [(pair.source, pair.target) for pair in find_pairs([arguments.pairs])]
    gold = list(gold_links(arguments.gold, pairs).values())
    if 0 < arguments.pairs_measured < len(pairs):
        places = [place * len(pairs) // arguments.pairs_measured for place in range(arguments.pairs_measured)]
        pairs, gold = [pairs[place] for place in places], [gold[place] for place in places]
    forward = load(arguments.model)
    backward = load(arguments.turned) if arguments.turned else None
    halves = {"chosen on": range(0, len(gold), 2), "reported": range(1, len(gold), 2), "all": range(len(gold))}
    print("| measure | step | links | chosen on | reported | all |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    for measure in arguments.measures:
        if reason := why_not(forward.model(), measure):
            print(f"| {measure} | {reason} |")
            continue
        results = {"one direction": links_of(forward, pairs, measure)}
        if backward is not None:
            other = links_of(backward, [(target, source) for source, target in pairs], measure)
            results["grow-diag"] = {
                step: [
                    combine_links(one, [(source, target) for target, source in turned])
                    for one, turned in zip(results["one direction"][step], other[step], strict=True)
                ]
                for step in STEPS
            }
        for name, by_step in results.items():
            for step, links in by_step.items():
                rates = [
                    score_alignments([links[index] for index in half], [gold[index] for index in half])
                    for half in halves.values()
                ]
                interval = rates[1].interval
                figures = (
                    f"{rates[0].error_rate:.1f} | {rates[1].error_rate:.1f} ({interval.low:.1f} to {interval.high:.1f})"
                )
                print(f"| {measure} | {step} | {name} | {figures} | {rates[2].error_rate:.1f} |", flush=True)


def log_probs(translator: Translator, sources: Sequence[list[int]], target_ids: list[int]) -> NDArray[np.float64]:
    """Log probabilities [source, target token] of one target, given sources of one length."""
    model, parts = translator.model(), []
    for start in range(0, len(sources), BATCH):
        batch = sources[start : start + BATCH]
        inputs = TokenInputs(torch.tensor(batch), torch.full((len(batch),), len(batch[0])))
        target_in = torch.tensor([[BOS, *target_ids[:-1]]] * len(batch))
        with torch.inference_mode():
            scores = model.log_probs(model(inputs, target_in))
        parts.append(scores[:, torch.arange(len(target_ids)), torch.tensor(target_ids)].double().numpy())
    return np.concatenate(parts)


def deletion_curve(
    translator: Translator, source_ids: list[int], target_ids: list[int], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Probability [target word, share] of each target word as a share of that with the whole source.

    Args:
        translator: the model.
        source_ids: source with EOS.
        target_ids: target with EOS.
        scores: [target word, source word] the larger, the earlier a word is replaced.

    Returns:
        The curve of each target word.
    """
    source_words = np.array(translator.source_tokenizer.word_indices(source_ids[:-1]))
    target_words = np.array(translator.target_tokenizer.word_indices(target_ids[:-1]))
    sources: list[list[int]] = [source_ids]
    for row in scores:
        order = np.argsort(-row, kind="stable")
        for share in SHARES[1:]:
            gone = set(order[: int(np.ceil(share * len(order)))].tolist())
            sources.append(
                [UNK if word in gone else token for token, word in zip(source_ids, source_words, strict=False)] + [EOS]
            )
    found = log_probs(translator, sources, target_ids)[:, :-1]
    curves = np.ones((len(scores), len(SHARES)))
    for word in range(len(scores)):
        own = target_words == word
        rows = found[1 + word * (len(SHARES) - 1) : 1 + (word + 1) * (len(SHARES) - 1)]
        curves[word, 1:] = np.exp(rows[:, own].sum(axis=1) - found[0, own].sum())
    return np.minimum(curves, 1.0)


def delete(arguments: argparse.Namespace) -> None:
    translator = load(arguments.model)
    pairs = [(pair.source, pair.target) for pair in find_pairs([*arguments.pairs])][: arguments.lines]
    generator = np.random.default_rng(arguments.seed)
    names = [name for name in arguments.measures if not why_not(translator.model(), name)]
    curves: dict[str, list[NDArray[np.float64]]] = {name: [] for name in ("random", *names)}
    for source, target in pairs:
        source_ids, target_ids = tokens(translator, source, target)
        source_words = translator.source_tokenizer.word_indices(source_ids[:-1])
        target_words = translator.target_tokenizer.word_indices(target_ids[:-1])
        for name in curves:
            if name == "random":
                scores = generator.random((max(target_words) + 1, max(source_words) + 1))
            else:
                (shares,) = matrices(translator, [(source, target)], name)
                scores = merge_weights(shares, source_words, target_words)
            curves[name].append(deletion_curve(translator, source_ids, target_ids, scores))
    print(f"| measure | {' | '.join(f'{share:.0%}' for share in SHARES)} | area % |")
    print(f"| --- |{' ---: |' * (len(SHARES) + 1)}")
    for name, each in curves.items():
        areas = np.array([100 * np.trapezoid(one.mean(axis=0), SHARES) for one in each])
        mean = np.concatenate(each).mean(axis=0)
        error = areas.std(ddof=1) / len(areas) ** 0.5
        values = " | ".join(f"{100 * value:.1f}" for value in mean)
        print(f"| {name} | {values} | {areas.mean():.1f} ± {1.96 * error:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare measures of influence.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measures", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("align", help="alignment error rate against links made by hand")
    one.add_argument("model", type=Path)
    one.add_argument("pairs", type=Path, help="pairs, separated by tabs")
    one.add_argument("gold", type=Path, help="links of the pairs")
    one.add_argument("--pairs", dest="pairs_measured", type=int, default=0, help="an evenly spaced sample of so many")
    one.add_argument("--turned", type=Path, help="model of the other direction")
    one.set_defaults(run=align)
    other = commands.add_parser("delete", help="probability of a target while source words are replaced")
    other.add_argument("model", type=Path)
    other.add_argument("pairs", type=Path, nargs="+", help="one file of pairs, or two aligned ones")
    other.add_argument("--lines", type=int, default=100)
    other.add_argument("--seed", type=int, default=1)
    other.set_defaults(run=delete)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    try:
        arguments.run(arguments)
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
