"""Runs of one chain in one mode, on workers that all contenders share."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from bench.contenders.platform import Platform
from bench.context.chains import CONTENDERS, DEFINITION, document
from bench.context.environment import ADDRESS_FILE
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import DefinitionExists, create_definition
from resources.services.secrets import put_secret
from tenants.scope import TenantRef

ACTOR = "bench"


class Chain(Platform):
    """A contender whose tenants define the customer's database with a fixed login."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._contender = CONTENDERS[name]
        self._address_file = os.environ[ADDRESS_FILE]

    def prepare(self) -> None:
        """Migrate the database, create the tenants and their definition."""
        super().prepare()
        address = conninfo_to_dict(Path(self._address_file).read_text(encoding="utf-8"))
        for tenant in self._tenants:
            _define(tenant, address)

    def _document(self, steps: int) -> dict[str, Any]:
        return document(self._contender, self._address_file, steps)


def _define(tenant: TenantRef, address: Mapping[str, Any]) -> None:
    put_secret(tenant, DEFINITION, str(address["password"]), actor=ACTOR)
    wanted = DefinitionInput(
        name=DEFINITION,
        type="database",
        config={
            "host": address["host"],
            "port": int(address["port"]),
            "dbname": address["dbname"],
            "user": address["user"],
        },
        secrets={"password": DEFINITION},
        scope="execution",
    )
    with suppress(DefinitionExists):  # another chain has created it
        create_definition(tenant, wanted, actor=ACTOR)
