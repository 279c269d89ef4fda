"""Inline tags in translations: whether each encloses the words that it enclosed, and what damaged pages come back as.

    python benchmarks/markup.py MODEL SOURCES REFERENCES TRAIN_SOURCES TRAIN_TARGETS
    python benchmarks/markup.py parsers
    python benchmarks/markup.py pages FILE.dat...

Each source gets one to four tags around one to three words that have links, drawn ten times by a generator of its own,
so that what changes in one source changes no draw of another; ways that translate the pieces between tags have the
first draw alone. The right words of a translation are those that IBM model 1 links to them, in both directions; a tag
is right if it encloses all of them, and none that is linked to another word. Model 1 knows no positions: of a word that
stands twice, neither direction prefers one place, and it has no link. `GOLDS` has two more: with such a word's first
place, and of the links of model 1 with ties those that model 2 finds too. `parsers` compares parsers of HTML (pip
install justhtml selectolax lxml html5lib).
"""

import importlib
import itertools
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Span = tuple[int, int]
NUM_DRAWS = 10
GOLDS = ("IBM-1", "IBM-1, ties to the first", "IBM-1 and IBM-2")
PAGE = """<!doctype html><html lang=de><head><title>Blog</title>
<meta name="description" content="Ein Blog"></head><body>
<article class="post"><h2><a href="/x?a=1&amp;b=2">Der rote Hund</a></h2><p>Ein <b>roter <i>großer</i></b> Hund läuft
<a href="#s" title="Schnee">im Schnee</a>.<br>Er bellt&nbsp;laut.</p><ul><li>eins<li>zwei</ul>
<table><tr><td>a<td>b</table><img src=x alt='Hund'><pre>x</pre><script>var a="<b>";</script></article></body></html>
"""


def damaged_pages(number: int) -> list[str]:
    """Pages of which parts were left out, doubled or exchanged."""
    generator = random.Random(0)
    pieces = ["<", ">", '"', "'", "</b>", "<p>", "<b>", "<!--", "&", "</", "<td>", '<a href="']
    pages: list[str] = []
    for _ in range(number):
        page = PAGE
        for _ in range(generator.randint(1, 8)):
            place = generator.randrange(len(page))
            choice = generator.random()
            added = generator.choice(pieces) if choice > 0.5 else ""
            page = page[:place] + added + page[place + (0 if added else generator.randint(1, 6)) :]
        pages.append(page)
    return pages


def tags_of(page: str) -> list[tuple[str, str]]:
    from heedful.documents.html_tokens import html_tokens

    return [(token.kind, token.name) for token in html_tokens(page) if token.kind in ("start", "end")]


def measure_pages() -> None:
    from heedful.documents.html import HtmlMarkup

    pages = damaged_pages(1000)
    num_same = num_tags = 0
    for page in pages:
        markup = HtmlMarkup(page)
        num_same += markup.write(markup.passages) == page
        changed = markup.write([type(each)(each.text + " <x>", each.tags) for each in markup.passages])
        num_tags += tags_of(changed) == tags_of(page)
    print(f"1,000 damaged pages: {num_same} unchanged without a translation, {num_tags} with the same tags after one")
    large = PAGE * (1_000_000 // len(PAGE))
    started = time.process_time()
    markup = HtmlMarkup(large)
    markup.write(markup.passages)
    print(f"page of 1 MB: {time.process_time() - started:.2f} s")


def measure_inputs(paths: Sequence[str]) -> None:
    from heedful.documents.html import HtmlMarkup

    pages = [
        match[1]
        for path in paths
        for match in re.finditer(r"^#data\n(.*?)\n#(?=errors|new-errors)", Path(path).read_text("utf-8"), re.M | re.S)
    ]
    num_same = num_tags = 0
    for page in pages:
        markup = HtmlMarkup(page)
        num_same += markup.write(markup.passages) == page
        changed = markup.write([type(each)(each.text + " <x>", each.tags) for each in markup.passages])
        num_tags += tags_of(changed) == tags_of(page)
    print(f"{len(pages)} inputs: {num_same} unchanged without a translation, {num_tags} with the same tags after one")


def measure_parsers() -> None:
    parsers: dict[str, Callable[[str], Any]] = {}
    for name, make in (
        ("selectolax", lambda: lambda page: importlib.import_module("selectolax.lexbor").LexborHTMLParser(page).html),
        ("justhtml", lambda: lambda page: importlib.import_module("justhtml").JustHTML(page, sanitize=False).to_html()),
        ("lxml", lambda: lambda page: importlib.import_module("lxml.html").document_fromstring(page)),
        ("html5lib", lambda: lambda page: importlib.import_module("html5lib").parse(page)),
    ):
        parsers[name] = make()
    inputs = {
        "1 MB": PAGE * (1_000_000 // len(PAGE)),
        "fonts": "".join(f"<font a{number}=1><p>" for number in range(1000)),
        "svg": "<svg>" + "<a>" * 6000 + "</b>" * 5000,
    }
    for name, parse in parsers.items():
        for kind, page in inputs.items():
            started = time.process_time()
            parse(page)
            print(f"{name}, {kind}: {time.process_time() - started:.2f} s")
    measure_pages()


def spans_with_links(
    generator: random.Random, words: Sequence[str], links: Sequence[Span]
) -> list[tuple[int, int, set[int]]]:
    """Spans of words whose counterparts stand together, with these."""
    targets: dict[int, set[int]] = {}
    sources: dict[int, set[int]] = {}
    for source, target in links:
        targets.setdefault(source, set()).add(target)
        sources.setdefault(target, set()).add(source)
    spans: list[tuple[int, int, set[int]]] = []
    for first in range(len(words)):
        for last in range(first + 1, min(first + 3, len(words)) + 1):
            if all(word in targets for word in range(first, last)) and any(map(str.isalnum, words[first:last])):
                right = set().union(*(targets[word] for word in range(first, last)))
                within = set().union(*(sources.get(word, set()) for word in range(min(right), max(right) + 1)))
                if within <= {*range(first, last)}:
                    spans.append((first, last, right))
    generator.shuffle(spans)
    chosen: list[tuple[int, int, set[int]]] = []
    number = generator.randint(1, 4)
    for span in spans:
        if len(chosen) < number and all(span[1] <= other[0] or span[0] >= other[1] for other in chosen):
            chosen.append(span)
    return sorted(chosen, key=lambda span: span[0])


def measure_tags(paths: Sequence[str]) -> None:
    import sacrebleu

    import heedful
    from heedful.predictors.tagged import with_tags
    from heedful.predictors.translator import Translator
    from heedful.text.tag_placement import AlignedSegment, place_tags
    from heedful.text.word_alignment import align_pairs

    model = heedful.load(paths[0], kind=Translator)
    sources, references, *training = (Path(path).read_text("utf-8").split("\n")[:-1] for path in paths[1:])
    learned = list(zip(*training, strict=True))

    def linked(outputs: Sequence[str], gold: str) -> list[list[Span]]:
        pairs = [(tokens(source), tokens(target)) for source, target in [*learned, *zip(sources, outputs, strict=True)]]
        first = align_pairs(pairs, "intersection")[-len(outputs) :]
        if gold == "IBM-1":
            own = pairs[-len(outputs) :]
            return [without_ties(links, *pair) for links, pair in zip(first, own, strict=True)]
        if gold == "IBM-1, ties to the first":
            return first
        second = align_pairs(pairs, "intersection", model="ibm2")[-len(outputs) :]
        return [sorted({*one} & {*two}) for one, two in zip(first, second, strict=True)]

    translated = model.translate(sources, attention=True)
    whole = [each.text for each in translated]
    for gold in GOLDS:
        links = linked(whole, gold)
        draws = [
            [drawn_tags(f"{draw} {row}", source, links[row]) for row, source in enumerate(sources)]
            for draw in range(NUM_DRAWS)
        ]
        ways = {
            "attention": [
                [with_tags(each, output, model) for each, output in zip(passages, translated, strict=True)]
                for passages in draws
            ],
            "share of the length": [
                [
                    place_tags(each, target, [AlignedSegment(0, len(each.text), 0, len(target))])
                    for each, target in zip(passages, whole, strict=True)
                ]
                for passages in draws
            ],
            "text nodes": [by_nodes(model, draws[0])],
            "as LibreTranslate": [by_search(model, draws[0], whole)],
        }
        for way, outputs in ways.items():
            counts = [0, 0]
            for passages, tagged in zip(draws, outputs, strict=False):
                texts = [each.text for each in tagged]
                own = links if texts == whole else linked(texts, gold)
                for passage, output, pairs in zip(passages, tagged, own, strict=True):
                    are_right = right_tags(passage, output, pairs)
                    counts = [counts[0] + sum(are_right), counts[1] + len(are_right)]
            bleu = sacrebleu.corpus_bleu([each.text for each in outputs[0]], [references], lowercase=True).score
            share = f"{counts[0]:,} of {counts[1]:,} tags right, {counts[0] / counts[1]:.1%}"
            print(f"{gold}, {way}: {share}; BLEU-lc {bleu:.1f}")


def without_ties(links: Sequence[Span], source: Sequence[str], target: Sequence[str]) -> list[Span]:
    """Links between words each of which stands once in its sentence."""
    return [link for link in links if source.count(source[link[0]]) == target.count(target[link[1]]) == 1]


def word_places(text: str) -> list[Span]:
    from heedful.text.tag_placement import words

    return [*words(text, 0, len(text))]


def tokens(text: str) -> list[str]:
    return [text[start:end].lower() for start, end in word_places(text)]


def drawn_tags(seed: str, source: str, links: Sequence[Span]) -> Any:
    """Source with tags around words that have links."""
    from heedful.text.tagged_text import Tag, TaggedText

    spans, places = spans_with_links(random.Random(seed), tokens(source), links), word_places(source)
    return TaggedText(source, tuple(Tag(places[first][0], places[last - 1][1]) for first, last, _ in spans))


def right_tags(passage: Any, output: Any, links: Sequence[Span]) -> list[bool]:
    """True for each tag that encloses all words linked with its own, and no word linked with others."""
    source_places, target_places = word_places(passage.text), word_places(output.text)
    are_right: list[bool] = []
    for before, after in zip(passage.tags, output.tags, strict=True):
        own = {index for index, place in enumerate(source_places) if before.start <= place[0] < before.end}
        inside = {index for index, place in enumerate(target_places) if after.start <= place[0] < after.end}
        right = {target for source, target in links if source in own}
        strangers = {target for source, target in links if source not in own and target in inside}
        are_right.append(bool(right) and right <= inside and not strangers)
    return are_right


def by_nodes(model: Any, passages: Sequence[Any]) -> list[Any]:
    """Translations of the pieces between tags, each by itself."""
    from heedful.text.tagged_text import Tag, TaggedText

    cut: list[list[tuple[str, bool]]] = []
    for passage in passages:
        nodes: list[tuple[str, bool]] = []
        place = 0
        for tag in passage.tags:
            nodes += [(passage.text[place : tag.start], False), (passage.text[tag.start : tag.end], True)]
            place = tag.end
        cut.append([*nodes, (passage.text[place:], False)])
    pieces = iter(model.translate([text.strip() for nodes in cut for text, _ in nodes if text.strip()]))
    outputs: list[Any] = []
    for nodes in cut:
        text, tags = "", list[Tag]()
        for node, is_tagged in nodes:
            space = re.match(r"\s*", node)
            text += space[0] if space else ""
            start = len(text)
            text += next(pieces).text if node.strip() else ""
            if is_tagged:
                tags.append(Tag(start, len(text)))
            text += " " if node != node.rstrip() and node.strip() else ""
        outputs.append(TaggedText(text, tuple(tags)))
    return outputs


def by_search(model: Any, passages: Sequence[Any], whole: Sequence[str]) -> list[Any]:
    """Translations by the rule of Argos Translate, which LibreTranslate uses for HTML.

    A text of at most 200 characters is translated whole, and so is the text within each tag. Where all of the latter
    stand in the whole, apart, each tag goes around its own; otherwise the text is translated node by node.
    """
    from heedful.text.tagged_text import Tag, TaggedText

    inner = iter(model.translate([passage.text[tag.start : tag.end] for passage in passages for tag in passage.tags]))
    outputs: list[Any] = []
    for passage, target, nodes in zip(passages, whole, by_nodes(model, passages), strict=True):
        texts = [next(inner).text for _ in passage.tags]
        tags = [Tag(target.find(text), target.find(text) + len(text)) for text in texts]
        ordered = sorted(tags, key=lambda tag: tag.start)
        is_apart = all(one.end < other.start for one, other in itertools.pairwise(ordered))
        is_found = all(tag.start >= 0 for tag in tags) and len(passage.text) <= 200
        outputs.append(TaggedText(target, tuple(tags)) if is_found and is_apart else nodes)
    kept = sum(one.text == target for one, target in zip(outputs, whole, strict=True))
    print(f"as LibreTranslate: {kept:,} of {len(whole):,} texts translated whole")
    return outputs


if __name__ == "__main__":
    if sys.argv[1:] == ["parsers"]:
        measure_parsers()
    elif sys.argv[1:2] == ["pages"]:
        measure_inputs(sys.argv[2:])
    else:
        measure_tags(sys.argv[1:])
        measure_pages()
