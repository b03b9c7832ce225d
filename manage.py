#!/usr/bin/env python
"""Django's command line; `isolane --help` is the platform's own."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
    execute_from_command_line(sys.argv)
