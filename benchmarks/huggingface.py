"""Greedy outputs of transformers on an exported folder beside our own on the model it was exported from.

    heedful export MODEL --to huggingface OUT
    python benchmarks/huggingface.py MODEL OUT SOURCE [--limit 200]

Each side tokenises the lines itself. Needs the package transformers.
"""

import argparse
import warnings
from pathlib import Path

import torch

from heedful.search.config import with_outputs
from heedful.translator import load


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
    theirs: list[str] = []
    difference = 0.0
    for start in range(0, len(lines), 20):
        batch = tokenizer(lines[start : start + 20], return_tensors="pt", padding=True)
        with torch.inference_mode():
            found = model.eval().generate(
                **batch, num_beams=1, do_sample=False, max_new_tokens=most, forced_eos_token_id=None
            )
            theirs += tokenizer.batch_decode(found, skip_special_tokens=True)
            lengths = batch["attention_mask"].sum(1)
            logits = model(**batch, decoder_input_ids=found).logits
            features = translator.model()(batch["input_ids"], lengths, found).features
            difference = max(difference, (translator.model().logits(features) - logits).abs().max().item())
    batch = tokenizer(lines[:20], return_tensors="pt", padding=True)
    with torch.inference_mode():
        logits = model.double()(**batch, decoder_input_ids=found[:, :40]).logits
        features = (
            translator.model().double()(batch["input_ids"], batch["attention_mask"].sum(1), found[:, :40]).features
        )
        exact = (translator.model().logits(features) - logits).abs().max().item()
    same = sum(one.strip() == two.strip() for one, two in zip(ours, theirs, strict=True))
    print(
        f"{same} of {len(lines)} greedy outputs the same; logits of their outputs within {difference:.1e}, "
        f"in float64 {exact:.1e}"
    )
    for line, one, two in zip(lines, ours, theirs, strict=True):
        if one.strip() != two.strip():
            print(f"  {line}\n    ours   {one}\n    theirs {two}")


if __name__ == "__main__":
    main()
