"""The contenders; each is driven by a process of its own, since each has settings of its own."""

from importlib import import_module

import django

from bench.contenders.base import Contender
from orchestrator.cli.support.django import setup_django

MODULES = {
    "plain": "bench.contenders.plain",
    "durable": "bench.contenders.durable.contender",
    "chain": "bench.contenders.platform",
    "express": "bench.contenders.platform",
}
PLATFORM = frozenset({"chain", "express"})


def load(name: str) -> Contender:
    """Import a contender after setting up Django, which its models need."""
    if name in PLATFORM:
        setup_django()
    elif name == "durable":
        django.setup()
    made: Contender = import_module(MODULES[name]).contender(name)
    return made
