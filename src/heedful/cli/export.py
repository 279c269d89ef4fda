"""Write a model as an engine that runs without PyTorch.

The engine goes into the model folder, `engines/NAME/`, with what was measured of it beside PyTorch; from then on
`heedful translate` and `heedful evaluate` take the fastest engine that gives the model's own answers.

  onnx          any model, for ONNX Runtime; every kind of search
  ctranslate2   Transformers, for CTranslate2; greedy search, and beam search without length penalty

With --int8 matrices are in eight bits: a smaller engine that answers a little differently, taken only where it is
named, as in --engine onnx-int8.
"""

from typing import Annotated, Literal

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import Debug, IdleDevice, ModelPath, Quiet, Threads, use_threads


def run(
    model: ModelPath,
    to: Annotated[Literal["onnx", "ctranslate2"], typer.Option("--to", help="What will run it.", show_default=False)],
    int8: Annotated[bool, typer.Option("--int8", help="In eight bits.")] = False,
    device: IdleDevice = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Export a model."""
    use_threads(threads)
    messages = Messages(quiet)
    from heedful.export.engine import export_engine
    from heedful.translator import load

    translator = load(model)
    num_tokens, most = len(translator.source_tokenizer), translator.text.max_tokens
    messages.say(f"{model}: writing the engine and comparing it with PyTorch")
    made = export_engine(translator.model(), translator.folder, to, int8, num_tokens, most)
    parity = made.parity
    size = sum(path.stat().st_size for path in made.path.iterdir())
    print(
        f"{made.path}: {size / 1e6:.1f} MB; log probabilities within {parity.max_difference:.1e} of PyTorch's, "
        f"{parity.num_same} of {parity.num_outputs} outputs the same"
    )
