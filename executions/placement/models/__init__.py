"""Tables in public by which executions of all tenants share the workers."""

from executions.placement.models.catalogue import Catalogue
from executions.placement.models.due import Due, DueKind
from executions.placement.models.ticket import Ticket
from executions.placement.models.worker import Worker

__all__ = ["Catalogue", "Due", "DueKind", "Ticket", "Worker"]
