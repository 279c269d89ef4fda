"""Write files of stories with questions: about one, two and three of their facts, and about notices.

python examples/write_stories.py
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from heedful.synthetic import facts, notices
from heedful.text.stories import Story

NUMBERS = {"facts1": 12_000, "facts2": 22_000, "facts3": 22_000, "notices": 6_000}


def main(folder: Path = Path(), numbers: Mapping[str, int] = NUMBERS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stories: dict[str, Iterable[Story]] = {
        "facts1": facts.generate(numbers["facts1"], 1, seed=1),
        "facts2": facts.generate(numbers["facts2"], 2, seed=1),
        "facts3": facts.generate(numbers["facts3"], 3, seed=1),
        "notices": notices.generate(numbers["notices"], seed=1),
    }
    for name, own in stories.items():
        path = folder / f"{name}.jsonl"
        path.write_text("".join(f"{story.to_json()}\n" for story in own), encoding="utf-8", newline="\n")
        print(f"{numbers[name]:,} stories in {path}")


if __name__ == "__main__":
    main()
