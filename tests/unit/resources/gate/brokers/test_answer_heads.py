"""resources.gate.brokers.answer_heads: long blocks are noticed, however the bytes are cut; bodies are none."""

import pytest

from resources.gate.brokers.answer_heads import BLOCK_MAX, FramedHeads

HEADERS, CONTINUATION, DATA = 1, 9, 0


def frame(kind: int, size: int, *, ends: bool) -> bytes:
    return size.to_bytes(3, "big") + bytes([kind, 4 if ends else 0]) + bytes(4) + b"\n" * size


def accepts(data: bytes, size: int) -> bool:
    heads = FramedHeads()
    return all(heads.accept(data[at : at + size]) for at in range(0, len(data), size))


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
    assert accepts(b"".join(frames), size) is is_short
