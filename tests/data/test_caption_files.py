"""Files of captions as they are published: each gives the same images and captions."""

import json
from pathlib import Path

from heedful.data.caption_files import CaptionFile


def test_files_of_captions_as_they_are_published(tmp_path: Path):
    names = ["1_a.jpg", "2_b.jpg"]
    captions = [(names[0], "A dog, running ."), (names[0], 'A "good" dog .'), (names[1], "Two cats .")]
    for name in names:
        for folder in ("images", "own"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_bytes(b"")

    def file(name: str, text: str) -> Path:
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / name).write_text(text, "utf-8")
        return tmp_path / "texts" / name

    quoted = [(name, '"' + text.replace('"', '""') + '"') for name, text in captions]
    numbered = [f"{name}#{number}\t{text}\n" for number, (name, text) in enumerate(captions)]
    ids = {name: 17 + number for number, name in enumerate(names)}
    coco = {
        "info": {},
        "images": [{"id": ids[name], "file_name": name} for name in names],
        "annotations": [{"id": n, "image_id": ids[name], "caption": text} for n, (name, text) in enumerate(captions)],
    }
    sentences = [[{"raw": text} for own, text in captions if own == name] for name in names]
    karpathy = {"images": [{"filename": name, "sentences": raw} for name, raw in zip(names, sentences, strict=True)]}
    rows = [{"caption": text, "file_name": name} for name, text in captions]
    for name in names:
        (tmp_path / "own" / name).with_suffix(".txt").write_text("\n".join(t for own, t in captions if own == name))
    paths = [
        file("Flickr8k.token.txt", "".join(numbered)),
        file("captions.txt", "image,caption\n" + "".join(f"{name},{text}\n" for name, text in quoted)),
        file("captions.csv", "".join(f"{name},{text}\n" for name, text in quoted)),
        file("swapped.tsv", "text\tpath\n" + "".join(f"{text}\t{name}\n" for name, text in captions)),
        file("results.csv", "image_name| number| comment\n" + "".join(f"{n}| 0| {t}\n" for n, t in captions)),
        file("coco.json", json.dumps(coco)),
        file("karpathy.json", json.dumps(karpathy)),
        file("metadata.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
        tmp_path / "own",
    ]
    for path in paths:
        found = CaptionFile([path], (1, 2))
        assert [(pair.source, pair.target.strip()) for pair in found] == captions, path.name
        assert found.folder == (path if path.is_dir() else tmp_path / "images"), path.name
        assert all(found.image(pair).is_file() for pair in found)
