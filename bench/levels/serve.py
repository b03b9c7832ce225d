"""`python -m bench.levels.serve NAME`: one contender that executes calls.

Timing: a process of its own beside the benchmark.
Model: sync.
Guarantee: ends with its standard input.
Failure: bubble, as the text of the answer.
"""

import sys

from bench.contenders.base import Contender
from bench.levels.contenders import FORKS, SANDBOXES
from bench.serve import serve
from orchestrator.cli.support.django import setup_django


def load(name: str) -> Contender:
    """Return the contender of this name."""
    setup_django()
    from bench.levels.bare import Forks, Sandboxes  # noqa: PLC0415 - they need the settings first
    from bench.levels.runs import LevelRuns  # noqa: PLC0415

    bare = {SANDBOXES: Sandboxes, FORKS: Forks}
    return bare[name]() if name in bare else LevelRuns(name)


if __name__ == "__main__":
    serve(load(sys.argv[1]), sys.stdin, sys.stdout)
