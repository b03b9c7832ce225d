"""The `isolane` command."""

from orchestrator.cli.main import main

__all__ = ["main"]
