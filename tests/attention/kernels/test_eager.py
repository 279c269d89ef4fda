import math

import pytest
import torch
from torch.nn import functional

from heedful.attention.attend import attend
from heedful.attention.masks import padding
from heedful.attention.scores import Dot
from tests.attention.cases import make_case

ALL = ("weights", "log_normalizer", "argmax", "entropy")


def test_all_summaries_are_those_of_the_weights():
    query = torch.tensor([[[1.0]]], dtype=torch.float64)
    key = torch.tensor([[[1.0], [2.0], [3.0], [9.0]]], dtype=torch.float64)
    value = torch.eye(4, dtype=torch.float64)[None]
    attended = attend(query, key, value, score=Dot(1, 1), mask=padding(torch.tensor([3])), need=ALL, kernel="eager")
    weights = [math.exp(i) / (math.exp(1) + math.exp(2) + math.exp(3)) for i in (1, 2, 3)]
    assert attended.weights is not None
    assert attended.log_normalizer is not None
    assert attended.argmax is not None
    assert attended.entropy is not None
    assert attended.weights[0, 0].tolist() == pytest.approx([*weights, 0.0])
    assert attended.context[0, 0].tolist() == pytest.approx([*weights, 0.0])
    assert float(attended.log_normalizer) == pytest.approx(math.log(math.exp(1) + math.exp(2) + math.exp(3)))
    assert attended.argmax.tolist() == [[2]]
    assert float(attended.entropy) == pytest.approx(-sum(w * math.log(w) for w in weights))


def test_summaries_of_an_empty_row():
    case = make_case(leading=(1,))
    attended = attend(
        case.query, case.key, case.value, score=case.score, mask=padding(torch.tensor([0])), need=ALL, kernel="eager"
    )
    assert attended.entropy is not None
    assert attended.log_normalizer is not None
    assert attended.argmax is not None
    assert attended.entropy.tolist() == [[0.0] * 3]
    assert attended.log_normalizer.tolist() == [[-math.inf] * 3]
    assert attended.argmax.tolist() == [[0] * 3]


def test_only_what_is_asked_is_given():
    case = make_case()
    attended = attend(case.query, case.key, case.value, score=case.score, need=("entropy",), kernel="eager")
    assert attended.entropy is not None
    assert (attended.weights, attended.log_normalizer, attended.argmax) == (None, None, None)


def test_dropout_leaves_out_weights_and_reports_them_whole():
    case = make_case(num_keys=40)
    torch.manual_seed(5)
    attended = attend(
        case.query, case.key, case.value, score=case.score, dropout=0.4, need=("weights",), kernel="eager"
    )
    torch.manual_seed(5)
    assert attended.weights is not None
    assert attended.weights.sum(dim=-1).flatten().tolist() == pytest.approx([1.0] * 6)
    assert torch.equal(attended.context, functional.dropout(attended.weights, 0.4) @ case.value)
