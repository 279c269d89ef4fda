"""Greedy outputs of transformers on an exported folder beside our own on the model it was exported from.

    heedful export MODEL --to huggingface OUT
    python benchmarks/huggingface.py MODEL OUT SOURCE [--limit 200]

Each side tokenises the lines itself. Logits of the outputs are compared in float64, where both have their sinusoids in
float64 too, and in float32, where either side is compared with itself in float64 as well: what float32 costs each.
Needs the package transformers.
"""

import argparse
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.layers.positions import SinusoidalPositions, sinusoids
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.predictors.table import load
from heedful.search.config import with_outputs


def in_float64(ours: Seq2Seq, theirs: Any) -> tuple[Seq2Seq, Any]:
    """Copies in float64, whose sinusoids are not those of float32 in another type."""
    ours, theirs = deepcopy(ours).double(), deepcopy(theirs).double()
    for module in ours.modules():
        if isinstance(module, SinusoidalPositions):
            module.table = torch.zeros(0, module.size, dtype=torch.float64)
    for side in (theirs.model.encoder, theirs.model.decoder):
        number, size = side.embed_positions.weight.shape
        side.embed_positions.weight.data = sinusoids(torch.arange(number), size, is_halved=True)
    return ours, theirs


def our_logits(model: Seq2Seq, batch: Any, found: Tensor) -> Tensor:
    return model.logits(model(TokenInputs(batch["input_ids"], batch["attention_mask"].sum(1)), found).features)


def distance(one: Tensor, other: Tensor) -> float:
    return (one.double() - other.double()).abs().max().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("exported", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--limit", type=int, default=200)
    given = parser.parse_args()
    from transformers import MarianMTModel, MarianTokenizer

    lines = given.source.read_text(encoding="utf-8").split("\n")[: given.limit]
    lines = [line for line in lines if line.strip()]
    translator = load(given.model)
    most = translator.text.max_tokens
    # Outputs may be as long as the model allows on both sides: ours are cut sooner by default.
    search = with_outputs(translator.search, 1).model_copy(update={"max_length_ratio": 0.0, "max_length_offset": most})
    ours = [found.text for found in translator.stream(lines, search)]
    warnings.simplefilter("ignore")
    tokenizer, model = MarianTokenizer.from_pretrained(given.exported), MarianMTModel.from_pretrained(given.exported)
    mine, model = translator.model(), model.eval()
    mine64, model64 = in_float64(mine, model)
    theirs: list[str] = []
    largest = dict.fromkeys(("float32", "float64", "ours", "theirs"), 0.0)
    for start in range(0, len(lines), 20):
        batch = tokenizer(lines[start : start + 20], return_tensors="pt", padding=True)
        with torch.inference_mode():
            found = model.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=most, forced_eos_token_id=None)
            theirs += tokenizer.batch_decode(found, skip_special_tokens=True)
            one, two = our_logits(mine, batch, found), model(**batch, decoder_input_ids=found).logits
            one64, two64 = our_logits(mine64, batch, found), model64(**batch, decoder_input_ids=found).logits
        apart = distance(one, two), distance(one64, two64), distance(one, one64), distance(two, two64)
        largest = {name: max(value, new) for (name, value), new in zip(largest.items(), apart, strict=True)}
    same = sum(mine_said.strip() == said.strip() for mine_said, said in zip(ours, theirs, strict=True))
    print(f"{same} of {len(lines)} greedy outputs the same")
    print(
        f"logits within {largest['float32']:.1e} of each other in float32, {largest['float64']:.1e} in float64; "
        f"in float32 ours within {largest['ours']:.1e} of float64, theirs within {largest['theirs']:.1e}"
    )
    for line, mine_said, said in zip(lines, ours, theirs, strict=True):
        if mine_said.strip() != said.strip():
            print(f"  {line}\n    ours   {mine_said}\n    theirs {said}")


if __name__ == "__main__":
    main()
