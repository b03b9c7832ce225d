"""`python -m bench.context.serve NAME`: one chain in one mode that executes calls.

Timing: a process of its own beside the benchmark.
Model: sync.
Guarantee: ends with its standard input.
Failure: bubble, as the text of the answer.
"""

import sys

from bench.serve import serve
from orchestrator.cli.support.django import setup_django

if __name__ == "__main__":
    setup_django()
    from bench.context.contender import Chain  # its models need the settings first

    serve(Chain(sys.argv[1]), sys.stdin, sys.stdout)
