"""executions.semantics.canonical_json against the real thing: PostgreSQL gives back what was in memory."""

import json
from typing import Any

import pytest
from psycopg import Connection

from executions.semantics.canonical_json import loads
from tests.unit.executions.semantics.test_canonical_json import VALUES


@pytest.mark.parametrize("value", VALUES)
def test_stored_and_read_again(superuser: Connection[Any], value: Any) -> None:
    in_memory = loads(json.dumps(value))
    row = superuser.execute("SELECT %s::jsonb::text", [json.dumps(value)]).fetchone()
    assert row is not None
    assert json.dumps(loads(row[0])) == json.dumps(in_memory)
