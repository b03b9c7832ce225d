"""isolane: importing it imports no driver: web only reads definitions, and not every runner needs them."""

import subprocess
import sys

CODE = """
import sys
import isolane.nodes
from isolane.providers.http_api import HttpApi
from isolane.providers.model import Model
print(sorted({"httpx", "httpcore", "psycopg", "redis", "ssl"} & set(sys.modules)))
"""


def test_no_driver_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
