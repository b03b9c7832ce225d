"""The resources of a placement, settled in the statement that ends it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from executions.semantics.resource_tracker import TrackedResource
from executions.transitions.ledger import HELD, SETTLED, held_as_json
from tenants.statement import RowT, Statement, compose

SETTLEMENT_PARAMETERS = ("held", "held_ids", "revoked")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settlement:
    """What has become of a placement's resources, to be written with its end."""

    holdings: Sequence[TrackedResource] = ()  # that have changed since they were written
    revoked: Sequence[str] = ()  # what is no longer at a far side


# Of a placement of which only the database knows what it had.
UNKNOWN = Settlement()


class SettlingStatement(Generic[RowT]):
    """A statement that ends a placement, in two texts: alone, and with the settlement of its resources."""

    def __init__(
        self, name: str, *parts: str, then: str, parameters: Collection[str], row: type[RowT]
    ) -> None:
        self.alone = Statement(name, compose(*parts, then=then), parameters=parameters, row=row)
        self.settling = Statement(
            f"{name}_and_settle",
            compose(*parts, HELD, SETTLED, then=then),
            parameters={*parameters, *SETTLEMENT_PARAMETERS},
            row=row,
        )

    def fetch(self, parameters: dict[str, Any], settlement: Settlement | None) -> RowT | None:
        """Run it; without a settlement the run declares no resources, and nobody looks for any."""
        if settlement is None:
            return self.alone.fetch(parameters)
        settled = {
            "held": held_as_json(settlement.holdings),
            "held_ids": [holding.resource_id for holding in settlement.holdings],
            "revoked": list(settlement.revoked),
        }
        return self.settling.fetch({**parameters, **settled})
