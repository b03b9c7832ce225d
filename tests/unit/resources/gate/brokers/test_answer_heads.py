"""resources.gate.brokers.answer_heads: long heads are noticed, however the bytes are cut; bodies are no heads."""

import pytest

from resources.gate.brokers.answer_heads import BLOCK_MAX, AnswerHeads, FramedHeads, PlainHeads
from resources.gate.brokers.http_headers import LINES_MAX

HEADERS, CONTINUATION, DATA = 1, 9, 0
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


def lines(number: int) -> bytes:
    return b"a: b\r\n" * number


def frame(kind: int, size: int, *, ends: bool) -> bytes:
    return size.to_bytes(3, "big") + bytes([kind, 4 if ends else 0]) + bytes(4) + b"\n" * size


def accepts(heads: AnswerHeads, data: bytes, size: int) -> bool:
    return all(heads.accept(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 1024, 100_000])
@pytest.mark.parametrize(
    ("data", "is_short"),
    [
        (OK + lines(LINES_MAX - 1) + b"\r\n", True),
        (OK + lines(LINES_MAX) + b"\r\n", False),
        (OK + b"a: b\n" * LINES_MAX + b"\n", False),
        (OK + lines(LINES_MAX), False),  # and no end
        (INTERIM * LINES_MAX + OK + b"\r\n", True),
        (INTERIM + OK + lines(LINES_MAX), False),
        (OK + b"\r\n" + b"\n" * 5 * LINES_MAX, True),  # a body
        (b"\r\n" * 20, True),
    ],
)
def test_lines_of_heads_are_counted(data: bytes, size: int, is_short: bool) -> None:
    assert accepts(PlainHeads(), data, size) is is_short


@pytest.mark.parametrize("size", [1, 7, 1024, 100_000])
@pytest.mark.parametrize(
    ("frames", "is_short"),
    [
        ([frame(HEADERS, BLOCK_MAX, ends=True)] * 3, True),
        ([frame(HEADERS, BLOCK_MAX + 1, ends=True)], False),
        ([frame(HEADERS, BLOCK_MAX // 2, ends=False), frame(CONTINUATION, BLOCK_MAX // 2, ends=True)], True),
        ([frame(HEADERS, BLOCK_MAX, ends=False), frame(CONTINUATION, 1, ends=True)], False),
        ([frame(DATA, 5 * BLOCK_MAX, ends=False), frame(HEADERS, 9, ends=True)], True),
        ([frame(HEADERS, 0, ends=True)] * 9, True),
    ],
)  # fmt: skip
def test_bytes_of_blocks_are_counted(frames: list[bytes], size: int, is_short: bool) -> None:
    assert accepts(FramedHeads(), b"".join(frames), size) is is_short
