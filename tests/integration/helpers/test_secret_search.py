"""The search for secrets finds them wherever they are, and not itself."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import pytest

from tests.plugin import ROOT
from tests.secret_search import Search, needles_of

HOST = "tests.integration.helpers.searched_process"
USER = "shop"


PLACES = {  # where a secret is hidden, and a place that must be named
    "object": "object of a list",
    "memory": "memory ",
    "environ": "os.environ",
    "deleted file": "descriptor ",
    "pipe": "descriptor ",
    "socket": "descriptor ",
    "file": "file /",
    "nowhere": "",
}


def test_a_secret_is_found_wherever_it_is_and_the_search_does_not_find_itself(
    tmp_path: Path,
) -> None:
    secrets = {place: token_urlsafe(24) for place in PLACES}
    told = searched(tmp_path, secrets)
    for place, where in PLACES.items():
        hits = [hit for hit in told["hits"] if hit.endswith(f": {place}: as it is")]
        assert any(hit.startswith(where) for hit in hits) == (place != "nowhere"), (place, hits)
    assert not [hit for hit in told["hits"] if ": nowhere: " in hit and "reversed" not in hit]
    assert all(told["searched"].values()), told["searched"]
    assert told["left"] == [32, 32]  # in the pipe and the socket


def searched(home: Path, secrets: dict[str, str]) -> Any:
    """Search a process that hides them; its own folder for temporary files is the one that is searched."""
    given = {
        place: {
            "needles": [
                needle | {"form": f"{place}: {needle['form']}"}
                for needle in needles_of(secret, users=(USER,))
            ],
            "reversed": base64.b64encode(secret[::-1].encode()).decode(),
        }
        for place, secret in secrets.items()
    }
    done = subprocess.run(
        [sys.executable, "-m", HOST],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(home)},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "form",
    [
        lambda secret: secret.hex().encode(),
        base64.b64encode,
        lambda secret: base64.b64encode(b"x:" + secret + b"y"),
        lambda secret: base64.b64encode(b":" + secret),
        lambda secret: secret.decode().encode("utf-16-le"),
        lambda secret: secret.decode()[::-1].encode(),
        lambda secret: base64.b64encode(f"{USER}:{secret.decode()}".encode()),
        lambda secret: secret.replace(b"/", b"%2F").replace(b"+", b"%2B"),
    ],
)
def test_other_forms_of_a_secret_are_found(form: Any) -> None:
    secret = "a/secret+with-signs~of~length"
    search = Search(needles_of(secret, users=(USER,)))
    search._look(b"before" + form(secret.encode()) + b"after", "there")
    assert search.hits
    search.hits.clear()
    search._look(b"before" + form(secret[:-4].encode()) + b"after", "there")
    assert search.hits == []


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="found by chance"):
        needles_of("hunter2")
