"""`python -m orchestrator.cli`, where the command is not on the path."""

from orchestrator.cli.main import main

main()
