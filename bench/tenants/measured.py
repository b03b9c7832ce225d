"""`python -m bench.tenants.measured TENANTS CONNECTIONS RUNS WARMING`: one measurement; prints its figures as JSON.

The address of PostgreSQL's superuser comes by standard input.

Timing: minutes.
Model: sync.
Guarantee: a process of its own, so that its backends are new.
Failure: bubble.
"""

import json
import logging
import sys
from dataclasses import asdict

from orchestrator.cli.support.django import setup_django

if __name__ == "__main__":
    setup_django()
    logging.disable(logging.INFO)
    from bench.tenants.measure import measure  # its models need the settings first

    tenants, connections, runs, warming = sys.argv[1:]
    figure = measure(
        sys.stdin.readline().strip(),
        tenants=int(tenants),
        connections=connections,
        runs=int(runs),
        warming=int(warming),
    )
    sys.stdout.write(json.dumps(asdict(figure)) + "\n")
