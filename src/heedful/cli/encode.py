"""Encode texts as vectors.

The vector of a text is the input of the model's label layer; texts that the model finds alike have vectors that point
the same way. Texts are arguments, lines of a file, or lines of standard input; one line in, one line out: numbers
separated by spaces. With --format jsonl, each line is an object with the text and its vector.

Examples:
  heedful encode reviews.model 'A quiet room with a view'
  heedful encode reviews.model -i reviews.txt -o vectors.txt
"""

import json
from collections.abc import Iterator

from heedful.cli.lines import InputPath, LineFormat, Texts, answer_lines, require_one
from heedful.cli.messages import Messages
from heedful.cli.options import Debug, Device, Engine, ModelPath, OutputPath, Quiet, Threads, use_threads


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    target: OutputPath = None,
    output_format: LineFormat = "text",
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Encode texts."""
    use_threads(threads)
    require_one(texts, source)
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.classifier import WINDOW_TEXTS, Classifier

    classifier = load_to_run(model, engine, device, kind=Classifier)

    def vectors(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        for encoded in classifier.encode_stream(window):
            yield _line(encoded.text, encoded.vector.tolist(), output_format == "jsonl") + "\n", encoded.was_cut

    answer_lines(vectors, texts or (), source, target, Messages(quiet), WINDOW_TEXTS, classifier.text.max_tokens)


def _line(text: str, vector: list[float], is_json: bool) -> str:
    # Nine digits are enough for every float32 number.
    numbers = [f"{number:.9g}" for number in vector]
    if not is_json:
        return " ".join(numbers)
    return json.dumps({"text": text, "vector": [*map(float, numbers)]}, ensure_ascii=False)
