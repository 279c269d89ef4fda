"""Outputs for sources that are similar to corrected ones: the model alone, biased decoding, and an adapter.

    python benchmarks/near_matches.py split pairs.tsv near --without train.tsv
    python benchmarks/near_matches.py score MODEL near --part test --beam 5

`split` divides pairs whose sources the model has not seen: half of them are candidates for corrections, and sources of
the other half that have a near match among them are for `dev` (half of them) and `test`. The corrections are these
matches and 1,000 others. `score` prints the scores of

- the corrections themselves, as if they were the translations of the similar sources;
- the model without corrections;
- biased decoding, which is what `heedful translate` does;
- an adapter for each source: a matrix beside the features of the decoder, trained from zero by a few steps of Adam on
  the corrections that the source matches (the features are computed once, so that an adapter is as fast as it can be).
"""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from heedful.data.corpus import find_pairs
from heedful.engines.translation_memory import NEAR_SHARE, MemoryMatch
from heedful.evaluation.evaluate import compare, evaluate
from heedful.evaluation.report import Report
from heedful.models.inputs import inputs_on
from heedful.models.step_scores import TorchStepScores
from heedful.predictors.corrected import MOST_MATCHES
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.inputs import InputArrays, as_inputs
from heedful.search.interface import Engine, IntArray, StepScores
from heedful.search.phrases import laid_out
from heedful.text.encoding import encode_source
from heedful.text.ngram_index import NgramIndex
from heedful.text.vocabulary import BOS

NUMBER_OTHERS = 1000
METRICS = ("bleu", "chrf", "exact_match")
Pair = tuple[str, str]


def split(options: argparse.Namespace) -> None:
    seen = {pair.source for pair in find_pairs([options.without])} if options.without else set()
    rows = {pair.source: pair.target for pair in find_pairs([options.pairs]) if pair.source.strip()}
    pairs = [(source, target) for source, target in rows.items() if source not in seen and target.strip()]
    draw = random.Random(options.seed)
    draw.shuffle(pairs)
    memory, others = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
    index = NgramIndex([source for source, _ in memory])
    found: list[tuple[Pair, Pair]] = []
    for pair in others:
        place, share = next(iter(index.nearest(pair[0])), (-1, 0.0))
        if NEAR_SHARE <= share < 1.0:
            found.append((pair, memory[place]))
        if len(found) == options.number:
            break
    draw.shuffle(found)
    parts = {
        "memory": [*dict.fromkeys([match for _, match in found] + memory[:NUMBER_OTHERS])],
        "dev": [pair for pair, _ in found[: len(found) // 2]],
        "test": [pair for pair, _ in found[len(found) // 2 :]],
    }
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        text = "".join(f"{source}\t{target}\n" for source, target in part)
        (options.folder / f"{name}.tsv").write_text(text, encoding="utf-8", newline="\n")
        print(f"{name}: {len(part):,} pairs")


class Adapted(Engine):
    """Engine of a model with a matrix of its own for each source: features + features A."""

    def __init__(self, translator: Translator, matrices: Tensor) -> None:
        self.model = translator.model()
        self.matrices = matrices

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        with torch.inference_mode():
            memory = self.model.encode(inputs_on(torch.device("cpu"), inputs))
            return self.model.prepare_steps(memory), self.model.start(memory, num_hypotheses), self.matrices

    def step(
        self, state: Any, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        memory, inner, matrices = state
        with torch.inference_mode():
            if keep is not None:
                rows = torch.from_numpy(keep)
                memory, inner, matrices = memory.select(rows), inner.select(rows), matrices[rows]
            if parents is not None:
                inner = inner.reorder(torch.from_numpy(np.ascontiguousarray(parents)))
            decoded, inner = self.model.step(torch.from_numpy(np.ascontiguousarray(tokens)), inner, memory)
            features = decoded.features + decoded.features @ matrices
            log_probs = torch.log_softmax(self.model.logits(features).float(), dim=-1)
        return TorchStepScores(log_probs, None), (memory, inner, matrices)


def trained_matrices(
    translator: Translator, matches: Sequence[Sequence[MemoryMatch]], num_steps: int, rate: float
) -> Tensor:
    """[source, size, size] an adapter for each source."""
    model = translator.model()
    pairs = [match.pair for near in matches for match in near]
    encode = [translator.source_tokenizer, translator.target_tokenizer]
    sources, outputs = (
        [encode_source(tokenizer, pair[side], translator.text)[0] for pair in pairs]
        for side, tokenizer in enumerate(encode)
    )
    targets = torch.from_numpy(np.maximum(laid_out([each.tolist() for each in outputs]), 0))
    fed = torch.cat([torch.full((len(targets), 1), BOS), targets[:, :-1]], dim=1)
    with torch.no_grad():
        features = model(inputs_on(torch.device("cpu"), as_inputs(sources)), fed).features.float()
    counts = [len(near) for near in matches]
    padded = torch.nn.utils.rnn.pad_sequence(list(features.flatten(1).split(counts)), batch_first=True)
    padded = padded.unflatten(2, features.shape[1:]).flatten(1, 2)
    tokens = torch.nn.utils.rnn.pad_sequence(list(targets.split(counts)), batch_first=True).flatten(1)
    weight = model.output.weight.detach()
    bias = None if model.output.bias is None else model.output.bias.detach()
    matrices = torch.zeros(len(matches), weight.shape[1], weight.shape[1], requires_grad=True)
    optimizer = torch.optim.Adam([matrices], lr=rate)
    for _ in range(num_steps):
        logits = functional.linear(padded + padded @ matrices, weight, bias)
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten(), ignore_index=0, reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return matrices.detach()


def adapted(
    translator: Translator, items: Sequence[Pair], config: SearchConfig, num_steps: int, rate: float
) -> list[str]:
    memory = translator.memory.state()
    texts: dict[int, str] = {}
    order = sorted(range(len(items)), key=lambda index: len(items[index][0]))
    for start in range(0, len(order), 32):
        rows = order[start : start + 32]
        matches = [memory.matches(items[row][0], MOST_MATCHES) for row in rows]
        matrices = trained_matrices(translator, matches, num_steps, rate)
        sources = [encode_source(translator.source_tokenizer, items[row][0], translator.text)[0] for row in rows]
        found = search(Adapted(translator, matrices), sources, config, max_length=translator.text.max_tokens)
        texts |= {
            row: translator.target_tokenizer.decode(each[0].token_ids) for row, each in zip(rows, found, strict=True)
        }
    return [texts[index] for index in range(len(items))]


def score(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    items = [(pair.source, pair.target) for pair in find_pairs([options.folder / f"{options.part}.tsv"])]
    with tempfile.TemporaryDirectory() as folder:
        translator = load(shutil.copytree(options.model, Path(folder) / "m.model"), kind=Translator)
        pairs = find_pairs([options.folder / "memory.tsv"])
        translator.memory.journal.add([(pair.source, pair.target) for pair in pairs])
        config = translator.search.model_copy(update={"beam": options.beam})
        memory = translator.memory.state()
        matches = [memory.matches(source, MOST_MATCHES) for source, _ in items]
        mean_share = np.mean([near[0].share for near in matches])
        print(f"{len(items):,} sources, {len(memory.content.corrections):,} corrections, mean share {mean_share:.0%}")
        sources = [source for source, _ in items]
        translator.translate(sources[:1], search=config)
        alone = told("model", items, lambda: texts(translator, sources, config, corrected=False))
        told("corrections themselves", items, lambda: [near[0].correction for near in matches], alone)
        told("biased decoding", items, lambda: texts(translator, sources, config, corrected=True), alone)
        for num_steps, rate in options.adapter:
            call = partial(adapted, translator, items, config, int(num_steps), rate)
            told(f"adapter, {int(num_steps)} steps of {rate:g}", items, call, alone)


def texts(translator: Translator, sources: list[str], config: SearchConfig, corrected: bool) -> list[str]:
    return [one.text for one in translator.translate(sources, search=config, corrected=corrected)]


def told(name: str, items: Sequence[Pair], act: Callable[[], list[str]], alone: Report | None = None) -> Report:
    started = time.perf_counter()
    outputs = act()
    passed = time.perf_counter() - started
    references = [[target] for _, target in items]
    report = evaluate(outputs, references, [source for source, _ in items], metrics=METRICS)
    scores = ", ".join(f"{one.metric.name} {one.score:.2f}" for one in report.results)
    p_value = f", p = {compare(report, alone)[0].p_value:.3f}" if alone else ""
    print(f"{name}: {scores}{p_value}; {1e3 * passed / len(items):.1f} ms for each source", flush=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description="Outputs for sources that are similar to corrected ones.")
    commands = parser.add_subparsers(required=True)
    splitting = commands.add_parser("split")
    splitting.add_argument("pairs", type=Path)
    splitting.add_argument("folder", type=Path)
    splitting.add_argument("--without", type=Path)
    splitting.add_argument("--number", type=int, default=2000)
    splitting.add_argument("--seed", type=int, default=0)
    splitting.set_defaults(act=split)
    scoring = commands.add_parser("score")
    scoring.add_argument("model", type=Path)
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("--part", choices=["dev", "test"], default="dev")
    scoring.add_argument("--beam", type=int, default=5)
    scoring.add_argument("--threads", type=int, default=1)
    scoring.add_argument("--adapter", type=float, nargs=2, action="append", default=[], metavar=("STEPS", "RATE"))
    scoring.set_defaults(act=score)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
