r"""Training steps of heedful and of another toolkit on the same sentences, subwords and batch size, each in turn.

    python benchmarks/training_peers.py FOLDER --model transformer \
        --peer "JOEYNMT/bin/python -m joeynmt train transformer.yaml --skip-test" --pattern "Tokens per Sec: +([0-9.]+)"

FOLDER holds train.de, train.en and a SentencePiece model sp.model with ids 0 <unk>, 1 <pad>, 2 <s>, 3 </s>, as the
other toolkit's configuration names. What the other prints as target tokens a second is found by the pattern; its first
line, which is of warming up, is left out. Batches hold 4,096 tokens with padding, as with the other.
"""

import argparse
import re
import shlex
import statistics
import subprocess
import time
from pathlib import Path

import sentencepiece
import torch
from torch import nn

from heedful.data.batching import PairSampler
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.layers.cpu.accelerate import accelerate
from heedful.models import luong, transformer
from heedful.models.cpu_forms import CPU_FORMS
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import EOS
from heedful.training.memory_settings import tuned_process, use_large_pages
from heedful.training.pair_step import PairStep
from heedful.training.precision import autocast, resolve_precision

CPU = torch.device("cpu")
WARM_STEPS = 8
"""Kernels are generated for shapes that come for the first time."""


def make_model(name: str, vocabulary: int) -> Seq2Seq:
    """The Transformer of 3 + 3 layers of 256; or a GRU of 2 x 256 and 512, additive attention and input feeding."""
    if name == "transformer":
        return transformer.PRESETS["small"].build(vocabulary, vocabulary, True)
    config = luong.LuongConfig(
        cell="gru", num_layers=1, embedding_size=256, hidden_size=512, is_bidirectional=True, is_source_reversed=False,
        score="additive", window="global", has_feeding=True,
    )  # fmt: skip
    return config.build(vocabulary, vocabulary, False)


def encoded(folder: Path, pieces: sentencepiece.SentencePieceProcessor) -> EncodedCorpus:
    """Ids of both sides; heedful's own special tokens come first, so all others move up by four."""

    def side(language: str) -> EncodedSide:
        lines = (folder / f"train.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        return EncodedSide.of([[*(piece + 4 for piece in ids), EOS] for ids in pieces.encode(lines)])

    return EncodedCorpus(side("de"), side("en"))


def own_rate(name: str, corpus: EncodedCorpus, vocabulary: int, batch_tokens: int, steps: int) -> float:
    """Target tokens a second, preparing batches included."""
    torch.manual_seed(0)
    model = PairStep(make_model(name, vocabulary), 0.1)
    accelerate(model, CPU_FORMS)  # as training does
    optimizer = torch.optim.AdamW(model.parameters(), 5e-4, betas=(0.9, 0.98), fused=True)
    precision = resolve_precision("auto", CPU)
    batches = iter(PairSampler(corpus, batch_tokens, 0))
    started, tokens = 0.0, 0
    for step in range(steps + WARM_STEPS):
        if step == WARM_STEPS:
            started, tokens = time.perf_counter(), 0
        batch = next(batches)
        tensors = [torch.from_numpy(a) for a in (batch.source, batch.source_lengths, batch.target_in, batch.target_out)]
        with autocast(precision, CPU):
            loss = model(*tensors).total / batch.num_units
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tokens += batch.num_units
    return tokens / (time.perf_counter() - started)


def main() -> None:
    """Print target tokens per second of both, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", choices=("transformer", "rnn"), default="transformer")
    parser.add_argument("--peer", required=True, help="command of the other toolkit, some tens of updates long")
    parser.add_argument("--pattern", required=True, help="finds its target tokens a second")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    use_large_pages()  # as the command does
    pieces = sentencepiece.SentencePieceProcessor(str(options.folder / "sp.model"))
    corpus = encoded(options.folder, pieces)
    ours: list[float] = []
    others: list[float] = []
    for _ in range(options.rounds):
        with tuned_process():
            ours.append(own_rate(options.model, corpus, len(pieces) + 4, options.batch_tokens, options.steps))
        done = subprocess.run(shlex.split(options.peer), capture_output=True, text=True, check=False)
        found = [float(rate.replace(",", "")) for rate in re.findall(options.pattern, done.stdout + done.stderr)]
        if len(found) < 2:
            raise SystemExit(f"the other toolkit said no rate:\n{(done.stdout + done.stderr)[-2000:]}")
        others += found[1:]
        with tuned_process():
            ours.append(own_rate(options.model, corpus, len(pieces) + 4, options.batch_tokens, options.steps))
    mine, other = statistics.median(ours), statistics.median(others)
    print(f"{options.model}: heedful {mine:.0f}, the other {other:.0f} target tokens/s; ratio {mine / other:.2f}")


if __name__ == "__main__":
    main()
