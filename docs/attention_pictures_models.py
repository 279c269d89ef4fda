"""The pictures of attention inside models, on the page on attention: small cases, computed by the package itself."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
from drawing import BLUE, GREEN, INK, ORANGE, Panel, Picture
from numpy.typing import NDArray

from heedful.attention import SOFTMAX, Normalizer, ProjectiveTree
from heedful.attention.alignment_sums import alignment_posteriors, best_alignment, sum_alignments
from heedful.layers import overlap_penalty

WIDTH: Final = 720
"""Pixels of all pictures, as of the others on the page."""

Array = NDArray[np.float64]


def _weights(scores: Sequence[float] | Array, normalizer: Normalizer = SOFTMAX) -> Array:
    """Weights [query, key] of scores [key] or [query, key]."""
    tensor = torch.as_tensor(np.asarray(scores, dtype=np.float64))
    return normalizer.normalize(tensor.reshape(-1, tensor.shape[-1]), None).weights.numpy()


def coverage() -> Picture:
    """Draw six steps of a decoder whose query stays the same, without coverage and with it."""
    picture = Picture(WIDTH, 214)
    scores, num_steps, side = np.array([4.4, 3.8, 0.4, 3.2, -1.0, 2.4, 0.2, -2.0]), 6, 26.0
    for left, title, weight in ((34.0, "w = 0", 0.0), (274.0, "w = −4", -4.0)):
        covered, rows = np.zeros(len(scores)), []
        for _ in range(num_steps):
            rows.append(_weights(scores + weight * covered)[0])
            covered = covered + rows[-1]
        picture.text(left + 4 * side, 18, title)
        picture.cells(rows, left, 28, 8 * side, num_steps * side, gap=0.08)
        for step in range(num_steps):
            picture.text(left - 6, 28 + (step + 0.5) * side + 4, str(step + 1), anchor="end", size=11)
        panel = Panel(picture, 526, 28, 182, num_steps * side, (-0.7, 7.7), (0, 3.2))
        if weight:
            panel.bars(covered, BLUE, share=0.4)
        else:
            panel.title("Σ α")
            panel.axes(range(8), range(4))
            panel.bars(covered, INK, opacity=0.45)
    return picture


def copying() -> Picture:
    """Draw the distribution of the vocabulary, the attention to the source, and their mixture."""
    picture = Picture(WIDTH, 220)
    source = ("storm", "Emily", "hits", "Mexico")
    words = ("storm", "hits", "rain", "Mexico", "Emily")
    vocabulary, attention = _weights([1.4, 0.6, 1.0, 0.2, -1.8])[0], _weights([0.2, 2.4, -0.8, 0.6])[0]
    share = 0.4
    of_source: dict[str, float] = dict(zip(source, attention.tolist(), strict=True))
    mixture = [
        share * probability + (1 - share) * of_source.get(word, 0.0)
        for word, probability in zip(words, vocabulary.tolist(), strict=True)
    ]
    for left, width, title, labels, bars, colour in (
        (34.0, 218.0, "P_vocab", words, vocabulary, BLUE),
        (290.0, 162.0, "α", source, attention, ORANGE),
        (490.0, 218.0, "0.4 P_vocab + 0.6 α", words, mixture, GREEN),
    ):
        panel = Panel(picture, left, 28, width, 140, (-0.6, len(labels) - 0.4), (0, 0.8))
        panel.title(title)
        panel.axes((), (0, 0.4, 0.8))
        panel.bars(bars, colour, share=0.55)
        for place, word in enumerate(labels):
            picture.text(panel.at(place, 0)[0], 186, word, size=11)
    return picture


def monotonic() -> Picture:
    """Draw the alignment of phones with letters: before each phone is known, and given all of them."""
    picture = Picture(WIDTH, 240)
    letters, phones = tuple("gnocchi"), ("ɲ", "ɲ", "ɔ", "k", "k", "i")
    # Log probabilities of each phone at each letter, likely where letter and phone fit.
    fits = [(0, 1), (0, 1), (2,), (3, 4), (4, 5), (6,)]
    emissions = torch.full((1, len(phones), len(letters)), -4.0, dtype=torch.float64)
    for step, places in enumerate(fits):
        emissions[0, step, list(places)] = -0.7
    shifts = torch.arange(len(letters)) - torch.arange(len(letters))[:, None]
    scores = (-0.7 * (shifts - 1.0).abs()).double().masked_fill(shifts < 0, -torch.inf)
    transitions = torch.log_softmax(scores, dim=-1).expand(1, len(phones), -1, -1)
    prior = sum_alignments(emissions, transitions).log_priors[0].exp().numpy()
    real = torch.ones(1, len(phones), dtype=torch.bool)
    posterior = alignment_posteriors(emissions, transitions, real)[0].numpy()
    path = best_alignment(emissions, transitions)[0].tolist()
    side = 28.0
    for left, title, weights in ((60.0, "p(a | y<i)", prior), (420.0, "p(a | y)", posterior)):
        picture.text(left + len(letters) * side / 2, 18, title)
        picture.cells(weights.tolist(), left, 28, len(letters) * side, len(phones) * side, gap=0.08)
        for step, phone in enumerate(phones):
            picture.text(left - 6, 28 + (step + 0.5) * side + 4, phone, anchor="end", size=12)
        for place, letter in enumerate(letters):
            picture.text(left + (place + 0.5) * side, 28 + len(phones) * side + 16, letter, size=12)
    picture.dots(
        [(420.0 + (place + 0.5) * side, 28 + (step + 0.5) * side) for step, place in enumerate(path)], ORANGE, 5
    )
    return picture


def heads() -> Picture:
    """Draw the soft heads of the words of an expression, by softmax and by a projective tree, from bounded scores."""
    picture = Picture(WIDTH, 366)
    words = ("(", "*", "(", "+", "3", "4", ")", "5", ")")
    parents = (0, 0, 1, 2, 3, 3, 2, 1, 0)
    scores = np.full((len(words), len(words)), -1.0)
    scores[np.arange(len(words)), parents] = 1.0
    side = 316.0
    for left, title, normalizer in ((34.0, "Softmax()", SOFTMAX), (392.0, "ProjectiveTree()", ProjectiveTree())):
        weights = _weights(scores, normalizer)[1:]
        picture.text(left + side / 2, 16, title, size=12, is_code=True)
        height = side * len(weights) / len(words)
        picture.cells(weights, left, 44, side, height, gap=0.06)
        for place, word in enumerate(words):
            step = side / len(words)
            picture.text(left + (place + 0.5) * step, 37, word, size=13, is_code=True)
            if place:
                picture.text(left - 9, 44 + (place - 0.5) * step + 5, word, anchor="end", size=13, is_code=True)
    return picture


def document() -> Picture:
    """Draw the weights of the words of each sentence times that of the sentence, and the weights of the sentences."""
    picture = Picture(WIDTH, 150)
    sentences = (
        ("The", "plot", "is", "thin", "."),
        ("The", "actors", "are", "simply", "wonderful", "."),
        ("I", "saw", "it", "on", "Sunday", "."),
    )
    scores = ((-1.0, 0.8, -0.8, 2.2, -1.0), (-1.0, 0.6, -0.8, 1.0, 3.0, -1.0), (0.2, 0.4, 0.0, -0.2, 0.4, 0.0))
    of_sentences = _weights([1.0, 1.7, -0.8])[0]
    largest = max(weight * _weights(row)[0].max() for weight, row in zip(of_sentences, scores, strict=True))
    for line, (words, row, weight) in enumerate(zip(sentences, scores, of_sentences, strict=True)):
        top, x = 14 + 46 * line, 150.0
        picture.box(130 - 100 * weight, top + 6, 100 * weight, 18, ORANGE)
        picture.text(130 - 100 * weight - 6, top + 20, f"{weight:.2f}", anchor="end", size=11)
        for word, share in zip(words, weight * _weights(row)[0] / largest, strict=True):
            width = 12.0 + 8.6 * len(word)
            if share >= 0.02:
                picture.box(x, top, width, 30, BLUE, opacity=0.5 * share)
            picture.text(x + width / 2, top + 20, word, size=14)
            x += width + 4
    return picture


def hops() -> Picture:
    """Draw the weights of three hops over a sentence, twice: much the same, and apart; with the penalty of each."""
    picture = Picture(WIDTH, 232)
    words = ("The", "room", "was", "clean", ",", "the", "staff", "rude", "and", "the", "food", "cold", ".")
    opinions, side, left = (3, 7, 11), 46.0, 64.0
    alike, apart = (np.full((3, len(words)), -1.0) for _ in range(2))
    alike[:, opinions] = [[3.0, 2.2, 1.6], [2.9, 2.4, 1.5], [3.1, 2.1, 1.8]]
    for hop, place in enumerate(opinions):
        apart[hop, [place - 2, place - 1, place]] = [1.2, 0.2, 3.4]
    for place, word in enumerate(words):
        picture.text(left + (place + 0.5) * side, 20, word)
    for top, scores in ((30.0, alike), (136.0, apart)):
        weights = _weights(scores)
        picture.cells(weights, left, top, len(words) * side, 72, gap=0.06)
        for hop in range(3):
            picture.text(left - 8, top + 24 * hop + 16, f"a{hop + 1}", anchor="end", size=11)
        penalty = overlap_penalty(torch.from_numpy(weights)[None]).item()
        picture.text(left, top + 89, f"|A Aᵀ − I|² = {penalty:.2f}", anchor="start", size=11)
    return picture


def regions() -> Picture:
    """Draw a scene, the heads by which the square's region sees others, and those by which a word sees the regions."""
    picture = Picture(WIDTH, 152)
    rows, columns, side = 4, 4, 25.0
    places = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1).reshape(-1, 2)
    circle, square = (1, 0), (2, 3)
    near = {of: -((places - of) ** 2).sum(axis=1) for of in (circle, square)}
    head_of = {
        "encoder, head 1": _weights(1.6 * near[circle])[0],
        "encoder, head 2": _weights(0.7 * near[square])[0],
        "decoder, head 1": _weights(3.0 * near[circle])[0],
        "decoder, head 2": _weights(0.5 * near[circle])[0],
    }
    left, top, width = 10.0, 34.0, columns * side
    picture.cells(np.zeros((rows, columns)), left, top, width, rows * side)
    picture.dots([(left + (circle[1] + 0.5) * side, top + (circle[0] + 0.5) * side)], ORANGE, 10)
    picture.box(left + square[1] * side + 3, top + square[0] * side + 3, side - 6, side - 6, BLUE)
    grids = [*head_of.items(), ("decoder, mean", (head_of["decoder, head 1"] + head_of["decoder, head 2"]) / 2)]
    for place, (title, weights) in enumerate(grids):
        left = 140.0 + place * 118
        picture.text(left + width / 2, 22, title, size=11)
        picture.cells(weights.reshape(rows, columns), left, top, width, rows * side, gap=0.06)
    return picture


def steps() -> Picture:
    """Draw the weights of two texts at their steps, whose query vectors are the same, and mark the last rows."""
    picture = Picture(WIDTH, 264)
    texts = (("The", "room", "was", "clean", "."), ("The", "staff", "was", "rude", "and", "the", "food", "cold", "."))
    hidden = {"room": (2.4, 0.4), "staff": (2.4, 0.2), "food": (2.0, 0.6), "clean": (0.2, 2.6), "rude": (0.4, 3.0)}
    hidden |= {"cold": (0.6, 2.4)}
    angles = np.array([0.4, 0.9, 0.2, 1.2, 1.4, 0.6, 0.1, 1.0, 1.5])
    queries = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    side, left = 41.0, 66.0
    for words in texts:
        count = len(words)
        keys = np.array([hidden.get(word, (0.0, 0.0)) for word in words])
        picture.cells(_weights(queries[:count] @ keys.T), left, 34, count * side, count * 24.0, gap=0.08)
        for place, word in enumerate(words):
            picture.text(left + (place + 0.5) * side, 26, word, size=12)
        for step in range(count):
            name = f"s{step + 1}" if step + 1 < count else f"s{count} = s_T"
            picture.text(left - 8, 34 + (step + 0.5) * 24 + 4, name, anchor="end", size=11)
        picture.box(left, 34 + count * 24 + 2, count * side, 3, ORANGE)
        left += count * side + 70
    return picture


def sentences() -> Picture:
    """Draw the weights of words, of their sentences, and the product, which sums to 1 again."""
    picture = Picture(WIDTH, 176)
    of_words = np.array([1.2, 0.2, 0.8, -0.4, 1.4, 0.6, -0.2, 0.4, 1.3, 0.0, 0.9, -0.6])
    owners = np.repeat((0, 1, 2), (4, 3, 5))
    of_sentences = np.array([1.6, -0.6, 0.2])
    for place, (title, scores, colour) in enumerate(
        (
            ("P_w", of_words, BLUE),
            ("P_s", of_sentences, ORANGE),
            ("P", of_words + of_sentences[owners], GREEN),
        )
    ):
        count = len(scores)
        panel = Panel(picture, 34 + place * 236, 28, 202, 110, (-0.6, count - 0.4), (0, 0.8 if count == 3 else 0.4))
        panel.title(title)
        panel.axes((), (0, 0.4, 0.8) if count == 3 else (0, 0.2, 0.4))
        panel.bars(_weights(scores)[0], colour)
        ends = np.arange(3) + 1 if count == 3 else np.array((4, 7, 12))
        starts = np.array((0, *ends[:-1]))
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
            left, right = panel.at(start - 0.4, 0)[0], panel.at(end - 0.6, 0)[0]
            picture.line([(left, 146), (right, 146)], width=1.5)
            picture.text((left + right) / 2, 162, f"s{number}", size=11)
    return picture


MODEL_PICTURES: Final[dict[str, Callable[[], Picture]]] = {
    "coverage": coverage,
    "copying": copying,
    "heads": heads,
    "monotonic": monotonic,
    "document": document,
    "hops": hops,
    "regions": regions,
    "steps": steps,
    "sentences": sentences,
}
"""Every picture by the name of its file."""
