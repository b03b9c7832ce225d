"""Placements for tests without a database: their ids are made of names."""

from uuid import NAMESPACE_OID, UUID, uuid5

from resources.placement import Placement
from resources.runtimes.base import RunIdentity

ACME = RunIdentity(tenant="acme")
BOOT = UUID(int=1)


def run_id(name: str) -> UUID:
    """The id of the run that a test calls so."""
    return uuid5(NAMESPACE_OID, name)


def a_placement(run: str = "e1", *, tenant_id: int = 1, epoch: int = 1) -> Placement:
    """A placement of this run on a worker that no test asks for."""
    return Placement(
        tenant_id=tenant_id,
        execution_id=run_id(run),
        epoch=epoch,
        boot=BOOT,
        worker="w1@test",
        lane=f"lane.{BOOT}",
    )
