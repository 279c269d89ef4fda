"""Proof that sherpa-onnx reads the lexicons of `heedful lexicon`, and that a voice speaks every word of them.

`python -m tests.prove.prove_sherpa MODEL WORDS` writes a lexicon in both formats of sherpa-onnx and has every word
spoken. The voice is one of our own that only tells which tokens reached it, or with `--voice VOICE.onnx` one of Piper
for the format of the IPA, whose `VOICE.onnx.json` lies beside it. The package `sherpa-onnx` is installed in this
Python, or in that of `--python`.

In the plain format, sherpa-onnx 2 divides words at hyphens and letters such as ă, and skips words with a phone that the
voice lacks; they are left out there. In the format for the IPA every word is to be spoken; letters that the voice lacks
are skipped in it, which is told.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from heedful.cli.main import main as heedful
from heedful.text.pronunciations import LexiconFormat, entry_of

FORMATS: Final[tuple[LexiconFormat, ...]] = ("sherpa", "sherpa-ipa")
LEVELS: Final = 1024.0
"""Loudness of our voice: the id of a token, divided by this."""
AUDIBLE: Final = 0.01
PYTHON: Final = os.environ.get("HEEDFUL_SHERPA", sys.executable)
"""Python that has the package sherpa-onnx."""
MARKS: Final = ("_", "^", "$", " ")
"""Tokens between phones, before and behind a sentence, and between words."""
PROGRAM: Final = """
import json, sys
import sherpa_onnx

voice, tokens, lexicon, words = sys.argv[1:]
vits = sherpa_onnx.OfflineTtsVitsModelConfig(model=voice, lexicon=lexicon, tokens=tokens)
model = sherpa_onnx.OfflineTtsModelConfig(vits=vits, num_threads=1)
tts = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=model, silence_scale=1.0))
for word in open(words, encoding="utf-8").read().split("\\n")[:-1]:
    print(json.dumps([float(sample) for sample in tts.generate(word).samples]))
"""
METADATA: Final = {
    "model_type": "vits",
    "comment": "piper",
    "language": "Romanian",
    "n_speakers": "1",
    "punctuation": ", .",
}


@final
@dataclass(frozen=True)
class Voice:
    """Voice as sherpa-onnx takes it."""

    model: Path
    tokens: Path


def write_voice(folder: Path, phones: Iterable[str]) -> Voice:
    """Write a voice with the inputs and the output of VITS, whose samples are the ids of the tokens it is given."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Cast", ["input"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["numbers", "levels"], ["samples"]),
        helper.make_node("Unsqueeze", ["samples", "axis"], ["output"]),
    ]
    value = helper.make_tensor_value_info
    inputs = [value("input", TensorProto.INT64, ["text", "token"]), value("input_lengths", TensorProto.INT64, ["text"])]
    inputs.append(value("scales", TensorProto.FLOAT, [3]))
    outputs = [value("output", TensorProto.FLOAT, ["text", 1, "sample"])]
    constants = [numpy_helper.from_array(np.array(LEVELS, dtype=np.float32), "levels")]
    constants.append(numpy_helper.from_array(np.array([1]), "axis"))
    graph = helper.make_graph(nodes, "voice", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {**METADATA, "sample_rate": "16000"})
    onnx.save(model, folder / "voice.onnx")
    return Voice(folder / "voice.onnx", write_tokens(folder, [*MARKS, *sorted({*phones})]))


def voice_for(folder: Path, lexicon: Path, kind: LexiconFormat) -> Voice:
    """Write the voice for the phones of a lexicon, or for their letters."""
    phones = {phone for entry in read_lexicon(lexicon).values() for phone in entry}
    return write_voice(folder, "".join(phones) if kind == "sherpa-ipa" else phones)


def speakable(entries: dict[str, tuple[str, ...]], voice: Voice, kind: LexiconFormat) -> dict[str, tuple[str, ...]]:
    """Entries that sherpa-onnx speaks in a format."""
    tokens = {*names_of(voice)}
    return {
        word: phones
        for word, phones in entries.items()
        if kind == "sherpa-ipa" or (word.isascii() and word.isalpha() and tokens.issuperset(phones))
    }


def write_tokens(folder: Path, tokens: Sequence[str]) -> Path:
    """Write tokens.txt: tokens by id."""
    path = folder / "tokens.txt"
    path.write_text("".join(f"{token} {index}\n" for index, token in enumerate(tokens)), encoding="utf-8", newline="\n")
    return path


def voice_of_piper(folder: Path, path: Path) -> Voice:
    """Give a voice of Piper the metadata that sherpa-onnx reads, as its makers do."""
    import onnx
    from onnx import helper

    about = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
    model = onnx.load(path)
    helper.set_model_props(model, {**METADATA, "sample_rate": str(about["audio"]["sample_rate"])})
    onnx.save(model, folder / "voice.onnx")
    tokens = {ids[0]: token for token, ids in about["phoneme_id_map"].items()}
    return Voice(folder / "voice.onnx", write_tokens(folder, [tokens[index] for index in range(len(tokens))]))


def spoken(voice: Voice, lexicon: Path, words: Sequence[str], python: str = PYTHON) -> tuple[list[Any], str]:
    """Have each word spoken by itself.

    Returns:
        Samples of each, and what sherpa-onnx said.
    """
    listed = lexicon.with_name("spoken.txt")
    listed.write_text("".join(f"{word}\n" for word in words), encoding="utf-8", newline="\n")
    arguments = [python, "-c", PROGRAM, *map(str, (voice.model, voice.tokens, lexicon, listed))]
    done = subprocess.run(arguments, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(f"sherpa-onnx failed: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def tokens_of(samples: Sequence[float], voice: Voice) -> list[str]:
    """Tokens that our voice was given, without those between words and around them."""
    names = names_of(voice)
    ids = [round(sample * LEVELS) for sample in samples]
    return [names[index] for index in ids if index >= len(MARKS)]


def names_of(voice: Voice) -> list[str]:
    """Tokens by id."""
    return [line.rpartition(" ")[0] for line in voice.tokens.read_text(encoding="utf-8").split("\n")[:-1]]


def read_lexicon(path: Path) -> dict[str, tuple[str, ...]]:
    """Phones of each word."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return dict(entry for line in lines if (entry := entry_of(line)) is not None)


def write_lexicon(folder: Path, model: Path, words: Path, kind: LexiconFormat, *options: str) -> Path:
    """Write the lexicon of some words by `heedful lexicon`."""
    path = folder / f"{kind}.txt"
    if heedful(["lexicon", str(model), str(words), "--format", kind, "-o", str(path), "--quiet", *options]):
        raise SystemExit(f"no lexicon of {words}")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("words", type=Path)
    parser.add_argument("--voice", type=Path)
    parser.add_argument("--python", default=PYTHON)
    arguments = parser.parse_args()
    num_wrong = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        for kind in FORMATS[bool(arguments.voice) :]:
            lexicon = write_lexicon(folder, arguments.model, arguments.words, kind)
            voice = voice_of_piper(folder, arguments.voice) if arguments.voice else voice_for(folder, lexicon, kind)
            entries = speakable(read_lexicon(lexicon), voice, kind)
            samples, _ = spoken(voice, lexicon, [*entries], arguments.python)
            pairs = zip(entries.items(), samples, strict=True)
            if arguments.voice:
                wrong = [word for (word, _), one in pairs if not one or max(map(abs, one)) < AUDIBLE]
            else:
                wrong = [word for (word, phones), one in pairs if "".join(tokens_of(one, voice)) != "".join(phones)]
            num_wrong += len(wrong)
            num_out = len(read_lexicon(lexicon)) - len(entries)
            num_cut = sum(not {*names_of(voice)}.issuperset("".join(phones)) for phones in entries.values())
            print(f"{kind}: {len(entries) - len(wrong)} of {len(entries)} words spoken", *wrong[:5])
            print(f"  {num_out} left out, {num_cut} without letters that the voice lacks")
    return bool(num_wrong)


if __name__ == "__main__":
    sys.exit(main())
