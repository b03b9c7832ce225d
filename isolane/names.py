"""The patterns of names that authors choose."""

import re

# Whole strings only: match with `fullmatch`.
NODE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
VARIABLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,62}")
COST_KIND = re.compile(r"[a-z][a-z0-9_]{0,39}")
RESOURCE = re.compile(r"[a-z][a-z0-9_-]{0,62}")
RESOURCE_TYPE = re.compile(r"[a-z][a-z0-9_.-]{0,39}")
RESOURCE_ID = re.compile(r"[a-z][a-z0-9_.-]{0,39}_[0-9a-f]{32}")
