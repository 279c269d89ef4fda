"""Demonstration of readings: numbers, dates and abbreviations written as they are read out, in English or Chinese."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.demo import SETTINGS
from heedful.cli.messages import Messages, aligned

if TYPE_CHECKING:
    from heedful.predictors.translator import Translator
    from heedful.synthetic.grammar import Language, Split

NUM_PAIRS: Final = 60_000
NUM_VALIDATION: Final = 300
NUM_HELD_OUT: Final = 1_000
UNITS: Final[Mapping["Language", str]] = {"en": "words", "zh": "characters"}
"""Units of the readings; all else is trained as dates are."""
SAMPLES: Final[Mapping["Language", tuple[str, ...]]] = {
    "en": ("3:45 pm", "$2.50", "May 5th, 2021", "1,234,567", "12 km/h", "Dr."),
    "zh": ("2021年3月5日", "45.5%", "2本", "¥199", "15:30", "1,234,567"),
}


def demonstrate(
    out: Path | None, minutes: float, seed: int, device: str, messages: Messages, language: "Language" = "en"
) -> None:
    """Generate written forms and their readings, train, and measure the model on other forms.

    Args:
        out: the model's folder; None = `readings.model`, or `readings-zh.model` for Chinese.
        minutes: longest training time; 0 = no limit.
        seed: seed of data, weights and order.
        device: PyTorch device.
        language: language of the readings.
    """
    from heedful.cli.train import train_and_watch
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator
    from heedful.runs.finish import ending, export_engines
    from heedful.runs.request import TrainRequest, merged_settings

    out = out or Path("readings.model" if language == "en" else f"readings-{language}.model")
    messages.say(f"making {NUM_PAIRS:,} numbers, dates, amounts and times, each with its reading")
    train, validation = _write_pairs(out, seed, language)
    limits = (f"training.seed={seed}", *([f"training.max_minutes={minutes}"] if minutes else []))
    settings = merged_settings(overrides=(*SETTINGS, f"text.target_units={UNITS[language]}", *limits))
    request = TrainRequest(data=(train,), out=out, dev=(validation,), settings=settings, device=device)
    info, outcome = train_and_watch(request, messages)
    print(ending(info, outcome))
    translator = load(out, device, kind=Translator)
    print(_exact_match(translator, seed, language))
    export_engines(info, messages.say, messages.warn)
    sentence = "It is 3:45 pm." if language == "en" else "现在是15:30。"
    print(f"\nmodel: {out}\nnext:  heedful pronounce MODEL --readings {shlex.quote(str(out))} '{sentence}'")


def demonstrate_chinese(out: Path | None, minutes: float, seed: int, device: str, messages: Messages) -> None:
    """Do the same in Chinese; arguments as for `demonstrate`."""
    demonstrate(out, minutes, seed, device, messages, "zh")


def _write_pairs(out: Path, seed: int, language: "Language") -> tuple[Path, Path]:
    from heedful.cli.demo_files import write_examples
    from heedful.synthetic.readings import written_forms

    counts: dict[Split, tuple[str, int]] = {
        "train": ("readings.tsv", NUM_PAIRS),
        "dev": ("readings-validation.tsv", NUM_VALIDATION),
    }
    texts = {
        name: "".join(f"{form}\t{reading}\n" for form, reading in written_forms(count, seed, language, split))
        for split, (name, count) in counts.items()
    }
    train, validation = write_examples(out, texts, "pairs")
    return train, validation


def _exact_match(translator: "Translator", seed: int, language: "Language") -> str:
    """Score of held-out forms, and the readings of some."""
    from heedful.data.prepare import EvaluationSet
    from heedful.predictors.cached_test_scores import keep_evaluation
    from heedful.synthetic.readings import written_forms

    pairs = [*written_forms(NUM_HELD_OUT, seed, language, "test")]
    measured = translator.measure(EvaluationSet([form for form, _ in pairs], [[reading] for _, reading in pairs]))
    keep_evaluation(translator.folder, measured)
    share = measured.report["exact_match"].score
    samples = SAMPLES[language]
    outputs = translator.translate(samples)
    rows = [("for", "model says"), *((form, output.text) for form, output in zip(samples, outputs, strict=True))]
    shown = "\n".join(f"  {line}" for line in aligned(rows).split("\n"))
    return f"\nexact match {share:.1f} % on {len(pairs):,} held-out forms: none of them was trained on\n\n{shown}"
