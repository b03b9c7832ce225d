"""`python -m bench.serve NAME`: a contender that executes calls, one JSON line after the other.

Timing: a process of its own beside the benchmark.
Model: sync.
Guarantee: ends with its standard input.
Failure: bubble, as the text of the answer.
"""

import json
import sys
import traceback
from typing import Any, TextIO

from bench.contenders import load
from bench.contenders.base import Contender, Skipped

CALLS = frozenset({"prepare", "ready", "fill", "drain", "one"})


def answer(contender: Contender, request: dict[str, Any]) -> dict[str, Any]:
    """Execute one call."""
    call = request.pop("call")
    if call not in CALLS:
        return {"error": f"there is no call {call!r}"}
    try:
        return {"value": getattr(contender, call)(**request)}
    except Skipped as skipped:
        return {"skipped": str(skipped)}
    except Exception:  # noqa: BLE001 - the benchmark shows it and ends
        return {"error": traceback.format_exc()}


def serve(contender: Contender, requests: TextIO, answers: TextIO) -> None:
    """Answer requests until their end."""
    for line in requests:
        answers.write(json.dumps(answer(contender, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(load(sys.argv[1]), sys.stdin, sys.stdout)
