"""Write the reference of all settings, docs/settings.md, from the classes that read them.

Run from the project's root: python docs/make_settings.py
"""

from itertools import groupby
from pathlib import Path
from typing import Final

from heedful.cli.settings_reference import SettingLine, all_settings

PAGE: Final = Path(__file__).with_name("settings.md")
HEAD: Final = """# Settings

All settings of a training, as `--set KEY=VALUE`, a file for `--config`, and `heedful.train(settings=…)` take them;
`heedful list settings` prints the same. A default that depends on the data says so. This page is written by
`python docs/make_settings.py`.
"""
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
        Markdown, with a table for each section of the settings.
    """
    parts = [HEAD]
    for section, lines in groupby(all_settings(), lambda line: line.key.partition(".")[0]):
        rows = "".join(_row(line) for line in lines)
        heading = "| setting | default | meaning | models |\n| --- | --- | --- | --- |"
        if section != "model":
            heading = "| setting | default | meaning |\n| --- | --- | --- |"
        parts.append(f"\n## {TITLES[section]}\n\n{heading}\n{rows}")
    return "".join(parts)


def _row(line: SettingLine) -> str:
    meaning = line.meaning.replace("|", "\\|")
    kinds = f" {', '.join(line.kinds)} |" if line.kinds else ""
    return f"| `{line.key}` | `{line.default}` | {meaning} |{kinds}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
