"""Secrets in files: `file:name` is <ISOLANE_SECRETS_DIR>/<tenant>/<name>."""

import os
import re
import stat
from pathlib import Path
from typing import ClassVar

from django.conf import settings

from resources.resolvers.base import MAX_BYTES, SecretResolver
from tenants.names import SCHEMA_NAME

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_FILE_MAX = MAX_BYTES + 2  # a newline of either form at the end


class FileResolver(SecretResolver):
    """Reads files of a folder per tenant that the operator mounts; links may only lead within it, as Kubernetes' do."""

    scheme: ClassVar[str] = "file"

    def read(self, tenant: str, path: str) -> str:
        """Return the content of the tenant's file, without the newline at its end."""
        if not NAME.fullmatch(path):
            raise self.unavailable(
                path,
                "use 1 to 100 of A-Z, a-z, 0-9, '_', '.' and '-', not beginning with '.' or '-'",
            )
        if not SCHEMA_NAME.match(tenant):
            raise self.unavailable(path, f"{tenant!r} is not the name of a tenant")
        if not settings.SECRETS_DIR:
            raise self.unavailable(path, "the operator has not set ISOLANE_SECRETS_DIR")
        content = self._content(Path(settings.SECRETS_DIR), tenant, path)
        return content.removesuffix("\n").removesuffix("\r")

    def _content(self, root: Path, tenant: str, name: str) -> str:
        try:
            root = root.resolve(strict=True)
            folder = (root / tenant).resolve(strict=True)
            file = (folder / name).resolve(strict=True)
            if folder != root / tenant or not file.is_relative_to(folder):
                raise self.unavailable(name, "its file lies outside the tenant's folder")
            return self._text(name, file)
        except FileNotFoundError:
            raise self.unavailable(name, "there is no such file in the tenant's folder") from None
        except OSError as error:
            raise self.unavailable(name, f"its file cannot be read: {error.strerror}") from None

    def _text(self, name: str, file: Path) -> str:
        # Checked while it is open: neither a link put there meanwhile nor a pipe that would block.
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise self.unavailable(name, "it is not a file")
            content = opened.read(_FILE_MAX + 1)
        if len(content) > _FILE_MAX:
            raise self.unavailable(name, f"its file has more than {MAX_BYTES} bytes")
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self.unavailable(name, "its file is not text in UTF-8") from None
