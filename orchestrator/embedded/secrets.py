"""Passwords and keys of an embedded stack, generated once and kept between starts."""

from __future__ import annotations

import base64
import json
import os
import secrets
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from foundation.undumpable import close_to_others
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.private_files import create_private, replace_private


def _password() -> str:
    """Return a password that needs no quoting in a connection URL, SQL or a configuration file."""
    return secrets.token_urlsafe(24)


def _django_secret_key() -> str:
    return secrets.token_urlsafe(50)


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(os.urandom(32)).decode("ascii")


@dataclass(frozen=True, kw_only=True, repr=False)
class Secrets:
    """All generated secrets; the representation shows none of them."""

    postgres_superuser_password: str = field(default_factory=_password)
    postgres_owner_password: str = field(default_factory=_password)
    postgres_login_password: str = field(default_factory=_password)
    postgres_worker_password: str = field(default_factory=_password)
    valkey_password: str = field(default_factory=_password)  # the administrator's
    valkey_web_password: str = field(default_factory=_password)
    valkey_worker_password: str = field(default_factory=_password)
    valkey_flower_password: str = field(default_factory=_password)
    run_cache_password: str = field(default_factory=_password)
    django_secret_key: str = field(default_factory=_django_secret_key)
    encryption_key: str = field(default_factory=_fernet_key)
    flower_password: str = field(default_factory=_password)
    admin_password: str = field(default_factory=_password)


def load_secrets(path: Path) -> Secrets:
    """Return the secrets in `path` (0600), generated on first use; missing ones are added."""
    close_to_others()
    if not path.exists():
        create_private(path, _encode(Secrets()))
    kept = _read(path)
    loaded = Secrets(**kept)
    if len(kept) < len(fields(Secrets)):
        replace_private(path, _encode(loaded))
    return loaded


def _encode(values: Secrets) -> str:
    return json.dumps(asdict(values), indent=2) + "\n"


def _read(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {entry.name for entry in fields(Secrets)}
        return {name: str(value) for name, value in content.items() if name in known}
    except (ValueError, AttributeError) as error:
        raise EmbeddedError(
            f"{path} is damaged: restore it, or remove {path.parent} with all its data"
        ) from error
