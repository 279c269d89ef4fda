"""Write the reference of all settings, docs/settings.md, from the classes that read them.

Run from the project's root: python docs/make_settings.py
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Final

from heedful.cli.settings_reference import SettingLine, all_settings
from heedful.models.table import MODELS

PAGE: Final = Path(__file__).with_name("settings.md")
HEAD: Final = """# Settings

All settings of a training, as `--set KEY=VALUE`, a file for `--config`, and `heedful.train(settings=…)` take them;
`heedful list settings` prints the same. A default that depends on the data says so. The last column of the first four
tables names the tasks that take a setting, where not all do; the others refuse it.

<!-- Written by `python docs/make_settings.py`. -->
"""
LEADS: Final = {
    "text": "From lines of text to tokens: units, vocabularies, lengths, word vectors, labels.",
    "images": "Sizes of the images that a model of captions reads, and of the regions that it attends to.",
    "training": "Batches, optimizer, learning rate, averages, validation, the end of a training, several processes.",
    "search": "From a model to its output: greedy or beam search, sampling, lengths, unknown words.",
    "model": "Settings that several models share, and then those of each; `model.kind` chooses the model.",
}
"""First sentence of each section."""
SHARED: Final = {
    "Several models: other settings": "The last column names the models that have a setting with this default.",
    "Several models: attention": "Each place of a model where it attends has these settings; in models with several "
    "places their names stand before them, as in `model.encoder_attention.score`.",
}
TITLES: Final = {
    "text": "Text",
    "images": "Images",
    "training": "Training",
    "search": "Search",
    "model": "Models",
}


def page() -> str:
    """Write the page.

    Returns:
        Markdown, with a table for each section of the settings; those of models by the models that have them.
    """
    parts = [HEAD]
    for section, lines in groupby(all_settings(), lambda line: line.key.partition(".")[0]):
        parts.append(f"\n## {TITLES[section]}\n\n{LEADS[section]}\n")
        if section != "model":
            parts.append("\n" + _table(lines, "tasks"))
            continue
        groups: dict[str, list[SettingLine]] = {}
        for line in lines:
            part = "attention" if line.key.startswith("model.attention.") else "other settings"
            title = f"Several models: {part}" if len(line.kinds) > 1 else line.kinds[0]
            groups.setdefault(title, []).append(line)
        for title, own in sorted(groups.items(), key=lambda group: not group[0].startswith("Several")):
            described = (MODELS[title].__doc__ or "") if title in MODELS else ""
            lead = SHARED.get(title) or described.partition("\n")[0].replace("Configuration of", "Settings of")
            parts.append(f"\n### {title}\n\n{lead}\n\n" + _table(own, "models" if title in SHARED else ""))
    return "".join(parts)


def _table(lines: Iterable[SettingLine], owners: str) -> str:
    """Table of settings; its last column names the models or the tasks that have them, if either is asked for."""
    more = (f"{owners} |", " --- |") if owners else ("", "")
    head = f"| setting | values | default | meaning | {more[0]}".rstrip() + f"\n| --- | --- | --- | --- |{more[1]}\n"
    return head + "".join(_row(line, owners) for line in lines)


def _row(line: SettingLine, owners: str) -> str:
    meaning = line.meaning.replace("|", "\\|")
    names = line.kinds or line.tasks or ("all",)
    last = f" {', '.join(names)} |" if owners else ""
    return f"| `{line.key}` | {line.values} | `{line.default}` | {meaning} |{last}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
