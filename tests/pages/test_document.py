from heedful.pages.document import document, folded, listed, table, texts
from tests.pages.read import Read


def test_nothing_of_the_data_is_taken_for_html():
    odd = "<b>&\"'"
    page = document(
        odd, [table([[odd, odd], [odd, odd]], odd), texts([(odd, odd)], odd), listed([odd]), folded(odd, "")]
    )
    read = Read(page)
    assert page.startswith("<!DOCTYPE html>\n")
    assert read.cells == [odd] * 6
    assert "b" not in read.tags
    assert read.attributes.count(("class", "marked")) == 2


def test_nothing_is_marked_without_a_name():
    assert "marked" not in table([["a"], [""]]) + texts([("", "")])
    assert listed([]) == ""
