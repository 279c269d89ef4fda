"""Files and folders that the commands of heedful read, and the ways in which they are damaged."""

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from heedful.files.records import CHECKSUM, checksum
from heedful.synthetic.facts import generate
from heedful.synthetic.notices import generate as generate_notices
from tests.prove.hostile_process import PATIENT, run
from tests.tasks.scenes import write_boxes, write_scenes

COMMON: Final = """
[text]
{text}
max_tokens = 24
[model]
{model}
dropout = 0.0
[training]
precision = "float32"
batch_tokens = 256
validate_every = 4
max_steps = 8
export = false
[training.optimizer]
learning_rate = 0.01
"""
TRANSFORMER: Final = """kind = "transformer"
num_encoder_layers = 1
num_decoder_layers = 1
model_size = 16
num_heads = 2
feedforward_size = 16
norm = "post"
"""
RNNSEARCH: Final = """kind = "rnnsearch"
embedding_size = 8
hidden_size = 8
maxout_size = 8
"""
CHARACTERS: Final = 'source_units = "characters"\ntarget_units = "characters"\n'
PIECES: Final = 'source_units = "pieces"\ntarget_units = "pieces"\n'
WORDS: Final = 'source_units = "words"\ntarget_units = "words"\n'
SEARCH: Final = "[search]\nbeam = 2\nmax_length_ratio = 1.0\nmax_length_offset = 4\n"
GRID: Final = f"""
seeds = [1]
[base.model]
{RNNSEARCH}
[base.text]
{CHARACTERS}
[base.training]
precision = "float32"
batch_tokens = 256
validate_every = 4
max_steps = 4
export = false
[[rows]]
name = "one"
[[rows]]
name = "two"
model = {{ maxout_size = 4 }}
"""


def _pairs(path: Path, number: int, seed: int, words: int = 1, tail: Callable[[str], str] = str.upper) -> None:
    draw = random.Random(seed)
    texts = [
        " ".join("".join(draw.choices("abcdef", k=draw.randint(2, 6))) for _ in range(draw.randint(1, words)))
        for _ in range(number)
    ]
    path.write_bytes("".join(f"{text}\t{tail(text)}\n" for text in texts).encode())


def make_tiny(root: Path) -> None:
    """Make the files of one small model, with the command itself.

    Args:
        root: an empty folder.

    Raises:
        RuntimeError: the command failed.
    """
    _pairs(root / "words.tsv", 150, 1)
    _pairs(root / "test.tsv", 12, 4)
    (root / "tiny.toml").write_text(COMMON.format(text=CHARACTERS, model=TRANSFORMER) + SEARCH, encoding="utf-8")
    _do(root, "train", "words.tsv", "--out", "tiny.model", "--config", "tiny.toml")
    shutil.copytree(root / "tiny.model", root / "corrected.model", ignore=shutil.ignore_patterns("run"))
    shutil.copytree(root / "tiny.model", root / "calibrated.model", ignore=shutil.ignore_patterns("run"))
    _do(root, "calibrate", "calibrated.model", "words.tsv")
    for source, correction in (("abc", "x"), ("fed", "y"), ("fed", "z")):
        _do(root, "correct", "corrected.model", source, correction)


def make_all(root: Path) -> None:
    """Make every file and folder that a command may read, with the commands themselves.

    Args:
        root: an empty folder.

    Raises:
        RuntimeError: a command failed.
    """
    make_tiny(root)
    _pairs(root / "texts.tsv", 150, 2, words=4)
    _pairs(root / "labels.tsv", 120, 3, words=3, tail=lambda text: "long" if len(text) > 9 else "short")
    _pairs(root / "test-texts.tsv", 12, 5, words=3)
    lines = [line.split("\t") for line in (root / "test.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
    for side, name in enumerate(("test.src", "test.tgt")):
        (root / name).write_text("".join(line[side] + "\n" for line in lines), encoding="utf-8", newline="\n")
    (root / "test.csv").write_text("".join(f"{a},{b}\n" for a, b in lines), encoding="utf-8", newline="\n")
    rows = "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in lines)
    (root / "test.jsonl").write_text(rows, encoding="utf-8", newline="\n")
    with gzip.GzipFile(root / "test.tsv.gz", "wb", mtime=0) as packed:
        packed.write((root / "test.tsv").read_bytes())
    num_words = [len(line.split()) for line in (root / "test-texts.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
    (root / "gold.links").write_text("0-0\n" * len(num_words), encoding="utf-8", newline="\n")
    rnnsearch = COMMON.format(text=WORDS, model=RNNSEARCH) + SEARCH
    (root / "pieces.toml").write_text(COMMON.format(text=PIECES, model=TRANSFORMER) + SEARCH, encoding="utf-8")
    (root / "words.toml").write_text(rnnsearch, encoding="utf-8")
    classes = COMMON.format(text=WORDS, model='kind = "text_classifier"\nembedding_size = 8\nhidden_size = 8\n')
    (root / "labels.toml").write_text(classes, encoding="utf-8")
    (root / "grid.toml").write_text(GRID, encoding="utf-8")
    _do(root, "train", "texts.tsv", "--out", "pieces.model", "--config", "pieces.toml")
    _do(root, "train", "texts.tsv", "--out", "words.model", "--config", "words.toml")
    task = ("--task", "classification")
    _do(root, "train", "labels.tsv", *task, "--out", "labels.model", "--config", "labels.toml")
    stories = "".join(f"{story.to_json()}\n" for story in generate(120, 1, seed=1))
    (root / "stories.jsonl").write_text(stories, encoding="utf-8", newline="\n")
    memory = COMMON.format(text=PIECES, model='kind = "memory_network"\nhidden_size = 8\n')
    (root / "stories.toml").write_text(memory, encoding="utf-8")
    task = ("--task", "answering")
    _do(root, "train", "stories.jsonl", *task, "--out", "stories.model", "--config", "stories.toml")
    passages = "".join(f"{story.to_json()}\n" for story in generate_notices(120, seed=1))
    (root / "passages.jsonl").write_text(passages, encoding="utf-8", newline="\n")
    spans = COMMON.format(text=PIECES, model='kind = "bidaf"\nembedding_size = 8\nhidden_size = 8\n')
    # The whole of a notice, so that its answer is not cut off.
    spans = spans.replace("max_tokens = 24", "max_tokens = 300")
    (root / "passages.toml").write_text(spans, encoding="utf-8")
    _do(root, "train", "passages.jsonl", *task, "--out", "passages.model", "--config", "passages.toml")
    write_boxes(write_scenes(root / "scenes.tsv", 40), root / "boxes.tsv")
    sizes = "embedding_size = 8\nhidden_size = 8\nannotation_size = 8\n"
    scenes = COMMON.format(text="", model=f'kind = "show_attend_tell"\n{sizes}')
    (root / "scenes.toml").write_text(scenes, encoding="utf-8")
    task = ("--task", "captioning")
    _do(root, "train", "scenes.tsv", *task, "--out", "scenes.model", "--config", "scenes.toml")
    _do(root, "export", "pieces.model", "--to", "huggingface", "marian")
    _do(root, "compare", "grid.toml", "words.tsv", "--out", "compared", "--test", "test.tsv")
    for name, engines in (
        ("tiny", ("onnx", "ctranslate2")),
        ("labels", ("onnx",)),
        ("stories", ("onnx",)),
        ("passages", ("onnx",)),
        ("scenes", ("onnx",)),
    ):
        shutil.copytree(root / f"{name}.model", root / f"{name}-engines.model")
        shutil.rmtree(root / f"{name}-engines.model" / "run")
        for engine in engines:
            _do(root, "export", f"{name}-engines.model", "--to", engine)


def _do(root: Path, *words: str) -> None:
    outcome = run((*words, "--quiet"), root, root.parent / "streams", PATIENT)
    if outcome.code:
        raise RuntimeError(f"heedful {' '.join(words)}: exit {outcome.code}: {outcome.err.decode()[-2000:]}")


@dataclass(frozen=True)
class Damage:
    """A way to damage a file."""

    name: str
    apply: Callable[[Path, random.Random], bool]
    """Damages the file; returns whether it could."""
    is_whole: bool = False
    """Whether the damaged file is a regular file of the same kind, with which results may differ."""


def _replaced(content: Callable[[bytes, random.Random], bytes]) -> Callable[[Path, random.Random], bool]:
    def apply(path: Path, draw: random.Random) -> bool:
        before = path.read_bytes()
        after = content(before, draw)
        path.unlink()
        path.write_bytes(after)
        return after != before

    return apply


def _instead(make: Callable[[Path], object]) -> Callable[[Path, random.Random], bool]:
    def apply(path: Path, draw: random.Random) -> bool:
        del draw
        path.unlink()
        make(path)
        return True

    return apply


def _flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _newer(content: bytes, draw: random.Random) -> bytes:
    del draw
    return content.replace(b'"format": 1', b'"format": 99').replace(b'"format": 2', b'"format": 99')


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


DAMAGES: Final = (
    Damage("missing", _instead(lambda path: None)),
    Damage("empty", _replaced(lambda content, draw: b"")),
    Damage("cut", _replaced(lambda content, draw: content[: draw.randrange(1, max(2, len(content)))])),
    *(Damage(f"flipped-{number}", _replaced(_flipped)) for number in range(3)),
    Damage("binary", _replaced(lambda content, draw: draw.randbytes(500))),
    Damage("not-utf-8", _replaced(lambda content, draw: content[:40] + b"\xff\xfe" + content[40:])),
    Damage("nul", _replaced(lambda content, draw: b"\0" * 100)),
    Damage("deep", _replaced(lambda content, draw: b"[" * 100_000)),
    Damage("long-number", _replaced(lambda content, draw: b"9" * 5000)),
    Damage("surrogate", _replaced(lambda content, draw: b'{"\\ud800": "\\udfff"}\n')),
    Damage("gzip", _replaced(lambda content, draw: _flipped_gzip(content))),
    Damage("folder", _instead(Path.mkdir)),
    Damage("fifo", _instead(os.mkfifo)),
    Damage("endless", _instead(lambda path: path.symlink_to("/dev/zero"))),
    Damage("loop", _instead(lambda path: path.symlink_to(path.name))),
    Damage("newer", _replaced(_newer)),
)
"""Ways to damage any file."""


def _flipped_gzip(content: bytes) -> bytes:
    packed = bytearray(gzip.compress(content, mtime=0))
    packed[min(12, len(packed) - 1)] ^= 0xFF
    return bytes(packed)


VALUES: Final[Mapping[str, Any]] = {
    "null": None,
    "true": True,
    "minus": -1,
    "huge": 10**30,
    "infinite": float("inf"),
    "nan": float("nan"),
    "empty": "",
    "outside": "../../etc/passwd",
    "surrogate": "\ud800",
    "list": [],
    "nested": [[{}]],
    "table": {},
}
"""Values that replace one value of a JSON file."""


def places(content: Any, depth: int = 3) -> Iterator[tuple[str | int, ...]]:
    """Paths of the values of a JSON file, to a depth.

    Args:
        content: the parsed file.
        depth: longest path.
    """
    if depth == 0:
        return
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for number, (key, value) in enumerate(entries):
        if number >= 40 or (isinstance(content, list) and number >= 2):
            break
        yield (key,)
        yield from ((key, *rest) for rest in places(value, depth - 1))


def replace_value(path: Path, place: tuple[str | int, ...], value: Any) -> None:
    """Replace one value of a JSON file, or of the first line of a file of JSON lines.

    Args:
        path: the file.
        place: keys and indices that lead to the value.
        value: the new value.
    """
    content, rest = read_tree(path)
    node = content
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    if path.name == "heedful.json" and place != (CHECKSUM,):
        _seal(content)
    path.write_text(json.dumps(content) + rest, encoding="utf-8", newline="\n")


def _seal(content: dict[str, Any]) -> None:
    """Renew the checksum of a record if it has one, so that its values are looked at."""
    if CHECKSUM in content:
        content[CHECKSUM] = checksum({key: value for key, value in content.items() if key != CHECKSUM})


def read_tree(path: Path) -> tuple[Any, str]:
    """Content of a JSON file and no rest; or of the first line of JSON lines, and the others."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        first, _, rest = text.partition("\n")
        return json.loads(first), "\n" + rest
    return json.loads(text), ""


def rehash(folder: Path, name: str) -> None:
    """Let the manifest of a model or engine say that a damaged file is as it was written.

    Args:
        folder: the model folder.
        name: path of the file in it.
    """
    path = folder / name
    for manifest in (path.parent / "heedful.json", path.parent / "engine.json"):
        if manifest.is_file() and path.is_file() and manifest != path:
            content = json.loads(manifest.read_text(encoding="utf-8"))
            if path.name in content.get("files", {}):
                content["files"][path.name] = sha256(path.read_bytes()).hexdigest()
                _seal(content)
                manifest.write_text(json.dumps(content), encoding="utf-8", newline="\n")
