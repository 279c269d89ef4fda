"""Describe a model: kind, training data, training, scores.

--card prints the model card instead: what the model is, how it runs, how it was trained, its scores, limits and
licence; your own README.md in the model folder, or the one that `heedful pack` would write.
MODEL may also be a file that `heedful export` wrote for JavaScript (.tgz) or as a page (.html).

Examples:
  heedful info pairs.model
  heedful info pairs.model --card
  heedful info pairs.tgz
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heedful.cli.exported_file import about_file, card_of_file, is_exported_file
from heedful.cli.messages import Messages, aligned, readable_size
from heedful.cli.options import Debug, IdleDevice, IdleThreads, ModelPath, Quiet
from heedful.errors import FileRefused
from heedful.files.bounded_read import open_regular, parse_json
from heedful.text.counts import counted
from heedful.text.durations import duration
from heedful.text.quoting import harmless

if TYPE_CHECKING:
    from heedful.engines.exported import Exported
    from heedful.engines.folder import ModelFolder
    from heedful.predictors.interface import Predictor
    from heedful.predictors.translator import Translator

Row = tuple[str, str]

_MOST_HEADER_BYTES: Final = 100_000_000
"""Size limit of the header of a safetensors file, in bytes, as its own readers have it."""
_ENGINES: Final = "engines"
"""Folder of exported engines in a model folder."""


def run(
    model: ModelPath,
    card: Annotated[bool, typer.Option("--card", help="Print the model card.")] = False,
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Describe a model."""
    if is_exported_file(model):
        print(_lines(card_of_file(model)) if card else aligned(about_file(model)))
        return
    from heedful.engines.folder import open_folder

    folder = open_folder(model, will_run=False)
    print(_lines(_card(folder)) if card else aligned(_about(folder)))
    warn_of_damage(model, Messages(quiet))


def _about(folder: "ModelFolder") -> list[Row]:
    from heedful.predictors.table import find_predictor
    from heedful.predictors.translator import Translator

    model, predictor = folder.path, find_predictor(folder)(folder)
    if isinstance(predictor, Translator):
        about = [*_about_model(predictor), *_about_files(model), *_about_engines(predictor)]
    else:
        about = [*_about_other(predictor), *_about_files(model)]
    return [*about, *_about_training(model, folder.facts["weights"])]


def _card(folder: "ModelFolder") -> str:
    """Card of a model: its own, or the one that packing it would write."""
    from heedful.engines.pack import CARD
    from heedful.pages.model_card import model_card, own_card

    name = folder.path.resolve().name
    return own_card(folder.path / CARD) or model_card(folder.path, folder.facts, "heedful", name)


def _lines(text: str) -> str:
    """Text of others for a terminal, which it does not steer."""
    return "\n".join(harmless(line) for line in text.rstrip().split("\n"))


def warn_of_damage(model: Path, messages: Messages) -> None:
    """Warn of files of the training run that are damaged, because what they hold is left out.

    Args:
        messages: where to warn.
    """
    from heedful.pages.record import damaged_parts

    for name in damaged_parts(model):
        messages.warn(f"{model / name}: damaged; what it holds is left out")


def _about_model(translator: "Translator") -> list[Row]:
    facts, text = translator.folder.facts, translator.text
    source, target = len(translator.source_tokenizer), len(translator.target_tokenizer)
    units = f"{text.source_units}{' and features' if 'features' in text.source_columns else ''}"
    vocabulary = f"{source:,} {units}"
    if not text.is_shared:
        vocabulary = f"{source:,} {units} of the source, {target:,} {text.target_units} of the target"
    search = translator.search
    return [
        ("model", str(translator.folder.path)),
        ("kind", str(facts.get("kind", ""))),
        ("languages", " to ".join(map(str, facts.get("languages", []))).replace("source to target", "not known")),
        ("parameters", f"{num_parameters(translator.folder.file('weights')):,}"),
        *_about_members(translator.folder),
        ("vocabulary", vocabulary),
        ("source", f"cut after {text.max_tokens} tokens"),
        ("search", f"beam {search.beam}, {search.length_penalty} length penalty {search.alpha:g}"),
        *[(f"{side} vectors", str(text)) for side, text in dict(facts.get("vectors", {})).items()],
        *([("dictionary", f"{len(translator.dictionary):,} words")] if "dictionary" in facts else []),
        *_about_code(translator),
        *_about_makers(translator.folder),
        *_about_settings(translator),
    ]


def _about_other(predictor: "Predictor") -> list[Row]:
    folder = predictor.folder
    return [
        ("model", str(folder.path)),
        ("task", folder.task),
        ("kind", str(folder.facts.get("kind", ""))),
        ("parameters", f"{num_parameters(folder.file('weights')):,}"),
        *_about_members(folder),
        *_about_code(predictor),
        *_about_makers(folder),
        *_about_settings(predictor),
    ]


def _about_makers(folder: "ModelFolder") -> list[Row]:
    from heedful.engines.pack import CARD
    from heedful.pages.model_card import card_license, license_of, own_card

    facts, card = folder.facts, own_card(folder.path / CARD)
    rows = [
        ("written by", f"heedful {facts.get('heedful', '')}"),
        ("converted from", str(facts.get("origin", ""))),
        ("licence", card_license(card) or license_of(facts)),
        ("card", str(folder.path / CARD) if card else ""),
    ]
    return [(name, text) for name, text in rows if text]


def _about_members(folder: "ModelFolder") -> list[Row]:
    from heedful.engines.members import members_of

    number = 1 + len(members_of(folder))
    return [("members", f"{number}, which predict together")] if number > 1 else []


def _about_settings(predictor: "Predictor") -> list[Row]:
    """Settings that differ from the defaults, a line for each section; the rest is in config.toml."""
    from heedful.config.base import leaves, read_differences
    from heedful.engines.folder import CONFIG

    sections = read_differences(predictor.folder.path / CONFIG)
    return [
        (f"[{name}]", ", ".join(f"{key} {value}" for key, value in leaves(tree)))
        for name, tree in sections.items()
        if tree
    ]


def _about_code(predictor: "Predictor") -> list[Row]:
    names = [str(name) for name in predictor.folder.facts.get("code", ())]
    return [("code", f"{name}; to run the model, add --code {name}") for name in names]


def num_parameters(weights: Path) -> int:
    """Count parameters without reading them.

    Returns:
        The number of parameters.

    Raises:
        FileRefused: the file is not in the format safetensors.
    """
    try:
        with open_regular(weights) as file:
            length = int.from_bytes(file.read(8), "little")
            header: dict[str, Any] = parse_json(file.read(min(length, _MOST_HEADER_BYTES)))
        return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FileRefused(f"{weights}: not a safetensors file; copy the whole folder again") from None


def _about_files(model: Path) -> list[Row]:
    run_size = _size(model / "run")
    return [
        ("size", f"{readable_size(_size(model) - run_size - _size(model / _ENGINES))} to use it"),
        ("run", f"{readable_size(run_size)} to continue training; may be deleted"),
    ]


def _about_engines(translator: "Translator") -> list[Row]:
    return [
        (f"engine {name}", engine.fault or f"{readable_size(_size(engine.path))}, {_near(engine)}")
        for name, engine in translator.backends.exported.items()
    ]


def _near(engine: "Exported") -> str:
    parity = engine.parity
    same = f"{parity.num_same} of {parity.num_outputs} outputs the same"
    return f"within {parity.max_difference:.1e} nats of PyTorch, {same}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _about_training(model: Path, weights: object) -> list[Row]:
    from heedful.evaluation.metrics.table import score_text
    from heedful.pages.record import read_run, read_validations, scores_of

    if not read_validations(model):
        return []
    run = read_run(model)
    last = run.validations[-1]
    best = run.best or last
    shown = ", ".join(score_text(name, value) for name, value in best["scores"].items())
    rows = [
        (
            "trained",
            f"{counted(last['step'], 'step')}, {last.get('epoch', 0):.1f} epochs, {duration(last.get('seconds', 0))}",
        ),
        ("best", f"{shown}; on {run.validated_on}, at step {best['step']:,}"),
    ]
    results = scores_of(model, weights).get("results", ())
    scores = ", ".join(f"{r['name']} {r['score']:.2f} [{r['low']:.2f}, {r['high']:.2f}]" for r in results)
    return [*rows, ("test", scores)] if scores else rows
