"""The values that a definition's config may contain: storable in PostgreSQL, and not like a secret. Pure."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from foundation.errors import InvalidInput

MAX_BYTES = 32_768
MAX_DEPTH = 10
# As written in configs and headers, with - for _ and in any case.
_SECRET_NAME = re.compile(
    r"(.*_)?(password|passwd|pwd|passphrase|secret|token|apikey|api_key|access_key|secret_key|private_key|credentials?)"
    r"|authorization|proxy_authorization|cookie"
)
# A field of configs with the name of a secret; these values say where the secret is used.
_USES = {("credentials", "brokered"), ("credentials", "inside")}
# One character before the colon: a whole scheme would make the search quadratic in long texts.
_URL_WITH_CREDENTIALS = re.compile(r"[a-z0-9+.-]://[^/?#\s]*@", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"\s*(bearer|basic)\s+\S|.*-----BEGIN [A-Z ]*PRIVATE KEY-----", re.I | re.S
)


class SecretInConfig(InvalidInput):
    """A config contains something like a secret; it would be stored and shown in plain text."""

    code = "secret_in_config"


def check_config(config: object) -> dict[str, Any]:
    """Return the config if it can be stored, and shown to every viewer of the definition."""
    if not isinstance(config, dict):
        raise InvalidInput("config is not an object; write fields and values.", field="config")
    if len(_written(config)) > MAX_BYTES:
        raise InvalidInput(f"config is larger than {MAX_BYTES} bytes.", field="config")
    for path, name, value in _values(config, "config", 0):
        _check_storable(path, value)
        _refuse_secret(path, name, value)
    return config


def _written(config: dict[str, Any]) -> str:
    """Return the config as JSON; values without a JSON form are refused later, by their path."""
    try:
        return json.dumps(config, default=str)
    except (ValueError, RecursionError):
        raise InvalidInput(f"config is nested deeper than {MAX_DEPTH}.", field="config") from None


def check_text(text: str, where: str) -> str:
    """Return the text if PostgreSQL can store it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{where} is not text in UTF-8.", field=where) from None
    if "\0" in text:
        raise InvalidInput(f"{where} contains a NUL character; leave it out.", field=where)
    return text


def _values(value: Any, path: str, depth: int, name: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield each value with its path and its nearest name."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"config is nested deeper than {MAX_DEPTH}.", field="config")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            check_text(str(key), f"{path}'s field")
            yield from _values(inner, f"{path}.{key}", depth + 1, str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _values(inner, f"{path}[{number}]", depth + 1, name)
    else:
        yield path, name, value


def _check_storable(path: str, value: Any) -> None:
    if isinstance(value, str):
        check_text(value, path)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{path} is {value}; write a finite number.", field=path)
    elif value is not None and not isinstance(value, bool | int | float):
        raise InvalidInput(
            f"{path} is not JSON; write text, a number, true, false or null.", field=path
        )


def _refuse_secret(path: str, name: str, value: Any) -> None:
    """Refuse a value that looks like a secret, without repeating it."""
    if value is None or isinstance(value, bool) or value == "" or (name, value) in _USES:
        return
    if name == "credentials":
        raise SecretInConfig(
            f"{path} is neither 'brokered' nor 'inside'; write one of them. A secret does not belong here: store it"
            " with 'isolane secrets set NAME' and name it under secrets.",
            field=path,
        )
    if _SECRET_NAME.fullmatch(name.lower().replace("-", "_")):
        reason = "is a secret by its name"
    elif isinstance(value, str) and _URL_WITH_CREDENTIALS.search(value):
        reason = "is an address with credentials in it"
    elif isinstance(value, str) and _SECRET_VALUE.match(value):
        reason = "looks like a credential"
    else:
        return
    raise SecretInConfig(
        f"{path} {reason}, and a config is shown to every viewer of the definition: store the value with"
        " 'isolane secrets set NAME' and name it under secrets.",
        field=path,
    )
