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


def test_the_picture_beside_the_table_is_read_before_those_of_other_folders(tmp_path: Path):
    for folder, content in (("", b"own"), ("pictures", b"other"), ("more", b"third")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "stray.jpg").write_bytes(content)
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / "pictures" / name).write_bytes(b"1")
    (tmp_path / "more" / "a.jpg").write_bytes(b"1")
    table = tmp_path / "table.csv"
    rows = [f"{name},a dog\n" for name in ("a.jpg", "b.jpg")] * 10
    table.write_text("image,caption\n" + "".join(rows) + "stray.jpg,a cat\n", "utf-8")
    file = CaptionFile([table], (1, 2))
    images = [file.image(pair) for pair in file]
    assert images[-1] == tmp_path / "stray.jpg"
    assert all(path.is_file() for path in images)
    assert [(file.folder / file.placed(pair).source).resolve() for pair in file] == [path.resolve() for path in images]
    assert not any("is read, not" in note for note in file.notes)  # those of one name are the same, beside the table
    (tmp_path / "pictures" / "a.jpg").write_bytes(b"2")
    assert [file.image(pair) for pair in file] == images
    (told,) = [note for note in file.notes if "is read, not" in note]
    assert f"{table}:2: {tmp_path / 'pictures/a.jpg'} is read, not {tmp_path / 'more/a.jpg'}" in told
