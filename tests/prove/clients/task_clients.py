"""Unmodified clients of Hugging Face Inference and of OpenAI against `heedful serve`; runs in an environment of theirs.

Arguments: address of the server, and a file of JSON with the models' names, inputs, and what the models say in Python.
Prints one line per client: its name, and "right" or what went wrong.
"""

import json
import math
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

KEY = "secret"
KNOWN: dict[str, Any] = {}
"""The address of the server, and what the file of the arguments says."""


def client(name: str, task: str = "") -> Any:
    """Client of one model, by its address."""
    address = f"{KNOWN['address']}/models/{KNOWN[name]['model']}" + (f"/pipeline/{task}" if task else "")
    return import_module("huggingface_hub").InferenceClient(base_url=address, api_key=KEY)


def near(one: Any, other: Any) -> bool:
    """Whether two numbers, or two lists of numbers, are the same but for rounding."""
    if isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    return math.isclose(float(one), other, abs_tol=1e-4)


def text_classification() -> None:
    """All labels, and the best."""
    known = KNOWN["classifier"]
    labels = client("classifier").text_classification(known["text"])
    assert [each.label for each in labels] == [label for label, _ in known["labels"]]
    assert near([each.score for each in labels], [share for _, share in known["labels"]])
    assert len(client("classifier").text_classification(known["text"], top_k=1)) == 1


def feature_extraction() -> None:
    """An array of one vector."""
    known = KNOWN["classifier"]
    vectors = client("classifier", "feature-extraction").feature_extraction(known["text"])
    assert vectors.shape == (1, len(known["vector"]))
    assert near(vectors[0].tolist(), known["vector"])


def question_answering() -> None:
    """A place in the context."""
    known = KNOWN["finder"]
    answer = client("finder").question_answering(question=known["question"], context=known["context"])
    assert answer.answer == known["answer"]
    assert known["context"][answer.start : answer.end].lower() == answer.answer.lower()


def image_to_text() -> None:
    """A picture by its path and by its content."""
    known = KNOWN["captioner"]
    for picture in (known["path"], Path(known["path"]).read_bytes()):
        assert client("captioner").image_to_text(picture).generated_text == known["caption"]


def translation() -> None:
    """A sentence."""
    known = KNOWN["translator"]
    assert client("translator").translation(known["text"]).translation_text == known["output"]


def summarization() -> None:
    """A text, by the address of the task."""
    known = KNOWN["translator"]
    assert client("translator", "summarization").summarization(known["text"]).summary_text == known["output"]


def openai_embeddings() -> None:
    """Vectors as base64, which the client asks for, and as numbers; models; errors."""
    module, known = import_module("openai"), KNOWN["classifier"]
    openai = module.OpenAI(base_url=f"{KNOWN['address']}/v1", api_key=KEY, max_retries=0)
    for options in ({}, {"encoding_format": "float"}):
        answer = openai.embeddings.create(model=known["model"], input=["another", known["text"]], **options)
        assert near(answer.data[1].embedding, known["vector"])
    assert known["model"] in [each.id for each in openai.models.list()]
    message = ""
    try:
        openai.embeddings.create(model="gpt", input="a")
    except module.NotFoundError as error:
        message = str(error)
    assert "There is no model" in message
    try:
        module.OpenAI(base_url=f"{KNOWN['address']}/v1", api_key="wrong", max_retries=0).models.list()
    except module.PermissionDeniedError:
        return
    raise AssertionError("a wrong key was taken")


CLIENTS: list[Callable[[], None]] = [
    text_classification,
    feature_extraction,
    question_answering,
    image_to_text,
    translation,
    summarization,
    openai_embeddings,
]


def main() -> None:
    """Run every client."""
    KNOWN.update(json.loads(Path(sys.argv[2]).read_text("utf-8")), address=sys.argv[1])
    for each in CLIENTS:
        outcome = "right"
        try:
            each()
        except Exception as error:  # every client is tried
            line = traceback.extract_tb(error.__traceback__)[1].line
            outcome = f"{line}: {type(error).__name__} {error}".replace("\n", " ")[:300]
        print(f"{each.__name__}\t{outcome}", flush=True)


if __name__ == "__main__":
    main()
