"""Write dates of which it is known which word comes from which: pairs to train on, pairs to test with, and their links.

python examples/write_linked_dates.py
heedful train dates.tsv --preset rnnsearch-tiny --set training.alignment_weight=1 \
    --set text.source_units=words --set text.target_units=words --set training.max_steps=400
heedful align dates.model dates-test.tsv --gold dates-test.links
"""

import random
from datetime import datetime, timedelta
from pathlib import Path

from heedful.synthetic.dates import SLOTS
from heedful.text.links import Links, format_pharaoh

TEMPLATES = (
    "weekday , day month_name year",
    "month_name day_ordinal , year",
    "the day_words of month_lower year",
    "year , month_abbr dd",
    "weekday_abbr , MONTH dd , year",
    "in year , on the day_ordinal of month_name",
)
TARGET = "year mm dd"
PARTS = {"mm": "month", "dd": "day"}


def part_of(slot: str) -> str:
    """Say which part of a date a word of a template is: year, month, day; a word of its own stands for itself."""
    return PARTS.get(slot, slot.lower().split("_")[0])


def draw(source: random.Random) -> tuple[str, str, Links]:
    """Draw a date, and link each word of its canonical form to the one it comes from."""
    moment = datetime(1950, 1, 1) + timedelta(days=source.randrange(36_500))
    template, target = source.choice(TEMPLATES).split(), TARGET.split()
    places = {part_of(slot): place for place, slot in enumerate(template)}
    texts = [" ".join(SLOTS[slot](moment) if slot in SLOTS else slot for slot in side) for side in (template, target)]
    return texts[0], texts[1], [(places[part_of(slot)], place) for place, slot in enumerate(target)]


def main(folder: Path = Path(), num_pairs: int = 5_000, num_test: int = 500) -> None:
    source = random.Random(1)
    for name, count in (("dates", num_pairs), ("dates-test", num_test)):
        rows = [draw(source) for _ in range(count)]
        pairs = "".join(f"{text}\t{target}\n" for text, target, _ in rows)
        (folder / f"{name}.tsv").write_text(pairs, encoding="utf-8", newline="\n")
        links = "".join(f"{format_pharaoh(found)}\n" for _, _, found in rows)
        (folder / f"{name}.links").write_text(links, encoding="utf-8", newline="\n")
        print(f"{count:,} pairs in {folder / name}.tsv")


if __name__ == "__main__":
    main()
