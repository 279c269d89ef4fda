import pytest

from heedful.errors import UsageError
from heedful.evaluation.metrics.lesson_bleu import lesson_bleu

REFERENCE = "A B C D E F".split()


@pytest.mark.parametrize(
    ("output", "expected"),
    [("A B B C D", 0.681477), ("A B", 0.135335), ("A B C D E F", 1.0), ("", 0.0), ("X Y", 0.0), ("A", 0.006738)],
)
def test_values(output: str, expected: float):
    assert lesson_bleu(output.split(), REFERENCE) == pytest.approx(expected, abs=5e-7)


def test_orders_of_the_first_value():
    output = "A B B C D".split()
    alone = [lesson_bleu(output, REFERENCE, order) for order in (1, 2, 3, 4)]
    brevity = 0.818730753
    assert alone[0] == pytest.approx(brevity * (4 / 5) ** 0.5)
    assert alone[1] == pytest.approx(alone[0] * (3 / 4) ** 0.25)
    assert alone[2] == pytest.approx(alone[1] * (1 / 3) ** 0.125)
    assert alone[3] == 0.0


def test_a_word_counts_as_often_as_the_reference_has_it():
    assert lesson_bleu(["A", "A", "A", "A"], ["A", "A", "B", "C"], 1) == pytest.approx(0.5**0.5)


def test_no_order():
    with pytest.raises(UsageError, match="max_order 0 is below 1"):
        lesson_bleu(["A"], ["A"], 0)
