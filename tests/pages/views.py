"""Views of sentences made without a model, for tests of the page."""

import numpy as np
from numpy.typing import NDArray

from heedful.pages.sentence import NextToken, Output, SentenceView, TracedSearch, WeightMap
from heedful.pages.words import Words
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.trace import SearchTrace
from heedful.text.vocabulary import EOS
from tests.search.engines import Toy


def weights_of(heads: int, rows: int, columns: int, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).exponential(size=(heads, rows, columns)) ** 2
    return (drawn / drawn.sum(axis=-1, keepdims=True)).astype(np.float32)


def words_of(pieces: list[str]) -> tuple[tuple[int, ...], Words]:
    ids = (*range(5, 4 + len(pieces)), EOS)
    return ids, Words.of(ids, pieces)


def output_of(
    pieces: list[str], num_source: int, seed: int = 0, choices: tuple[tuple[NextToken, ...], ...] = ()
) -> Output:
    ids, words = words_of(pieces)
    log_probs = tuple((-np.random.default_rng(seed).exponential(size=len(ids)) / 3).tolist())
    text = " ".join(words.words[:-1])
    weights = weights_of(1, len(ids), num_source, seed)[0]
    return Output(text, ids, words, log_probs, sum(log_probs), sum(log_probs) / len(ids), weights, choices)


def sentence_view(
    source: tuple[str, ...] = ("今天", "天气", "很", "好", "</s>"),
    target: tuple[str, ...] = ("▁The", "▁wea", "ther", "▁is", "▁good", "</s>"),
    alternative: tuple[str, ...] = ("▁It", "▁is", "▁fine", "</s>"),
) -> SentenceView:
    ids, words = words_of(list(source))
    other = output_of(list(alternative), len(ids), seed=7)
    best = output_of(list(target), len(ids))
    steps = tuple(
        (
            NextToken(best.ids[step], target[step], best.token_log_probs[step]),
            NextToken(99, alternative[0], -2.0, other),
        )
        for step in range(len(best.ids))
    )
    best = output_of(list(target), len(ids), choices=steps)
    heads, rows, columns = 2, len(best.ids), len(ids)
    maps = [WeightMap("cross", layer, weights_of(heads, rows, columns, 10 + layer)) for layer in range(2)]
    maps += [WeightMap("encoder", layer, weights_of(heads, columns, columns, 20 + layer)) for layer in range(2)]
    maps += [WeightMap("decoder", layer, np.tril(weights_of(heads, rows, rows, 30 + layer))) for layer in range(2)]
    return SentenceView(
        model="toy.model",
        kind="transformer",
        languages=("zh", "en"),
        engine="torch",
        text="".join(source[:-1]),
        source_ids=ids,
        source=words,
        was_cut=False,
        outputs=(best, other),
        maps=tuple(maps),
        searches=tuple(traced_search(beam) for beam in (1, 3)),
        reference="reference",
    )


def traced_search(beam: int) -> TracedSearch:
    trace = SearchTrace()
    config = SearchConfig(beam=beam, nbest=1, max_length_offset=3, max_length_ratio=1.0)
    search(
        Toy(seed=2, vocab_size=9), [np.array([5, 6, 7, 8, EOS])], config, max_length=6, trace=trace, need_alignment=True
    )
    pieces = {token: f"t{token}" for token in range(9)}
    texts = tuple(
        " ".join(pieces[trace.nodes[node].token] for node in trace.path(index)) for index in range(len(trace.nodes))
    )
    return TracedSearch(beam, trace, pieces, texts, departure=1)
