"""isolane.gate.routes: what is encoded comes back, and garbage is a ProtocolError."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolane.gate.routes import Listener, LoopbackPair, RouteTable
from isolane.protocol import ProtocolError

PAIR = LoopbackPair("127.77.0.1", "fd69:736f:6c61:6e65::1")


def test_a_table_comes_back() -> None:
    table = RouteTable(listeners=(Listener(0, PAIR, 443),), names={"api.example.com": PAIR})
    assert RouteTable.decode(table.encode()) == table
    assert RouteTable.decode(RouteTable().encode()) == RouteTable()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"listeners": [], "names": []}',
        b'{"listeners": 5, "names": {}}',
        b'{"listeners": [[1, ["127.0.0.1"], 80]], "names": {}}',
        b'{"listeners": [["x", ["127.0.0.1", "::1"], 80]], "names": {}}',
        b'{"listeners": [], "names": {"a": null}}',
        b"[" * 100_000,
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="ROUTES: not a table of routes"):
        RouteTable.decode(data)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@settings(max_examples=50)
@given(st.fixed_dictionaries({"listeners": values, "names": values}) | values)
def test_any_json_is_a_table_or_refused(value: object) -> None:
    with contextlib.suppress(ProtocolError):
        RouteTable.decode(json.dumps(value).encode())
