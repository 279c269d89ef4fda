"""Reading ahead: order, errors at their place, and no more than one block ahead."""

import threading
from collections.abc import Iterator

import pytest

from heedful.data.read_ahead import read_ahead


@pytest.mark.parametrize("number", [0, 1, 6, 7, 13])
def test_all_items_come_in_order(number: int):
    blocks = [*read_ahead(range(number), 3)]
    assert [one for block in blocks for one in block] == [*range(number)]
    assert {len(block) for block in blocks[:-1]} <= {3}


def test_an_error_comes_after_the_blocks_before_it():
    def items() -> Iterator[int]:
        yield from range(5)
        raise ValueError("line 6")

    blocks = read_ahead(items(), 2)
    assert (next(blocks), next(blocks)) == ([0, 1], [2, 3])
    with pytest.raises(ValueError, match="line 6"):
        next(blocks)


def test_one_block_is_read_ahead_by_another_thread_and_no_more():
    read, threads = list[int](), set[str]()
    third = threading.Event()

    def items() -> Iterator[int]:
        for index in range(100):
            read.append(index)
            threads.add(threading.current_thread().name)
            if index == 3:
                third.set()
            yield index

    blocks = read_ahead(items(), 2)
    assert next(blocks) == [0, 1]
    assert third.wait(10)
    assert len(read) <= 4
    assert all(name.startswith("heedful-reading") for name in threads)
    blocks.close()
    assert len(read) <= 4
    assert not [one for one in threading.enumerate() if one.name.startswith("heedful-reading")]
