"""A tenant's limits: runs at once, costs in a month, and what one run may use."""

from django.core.exceptions import ValidationError
from django.db import models

from foundation.errors import InvalidInput
from foundation.limit_bounds import Number
from tenants.budgets import check_budget
from tenants.models.tenant import Tenant
from tenants.rights import DatabaseRights, HasRights
from tenants.run_limits import QUOTA_LIMITS

_DEFAULT = "Empty for the platform's default."


def _in_range(name: str) -> models.CheckConstraint:
    bounds = QUOTA_LIMITS[name]
    allowed = models.Q(**{f"{name}__gte": bounds.least, f"{name}__lte": bounds.most})
    return models.CheckConstraint(condition=allowed, name=f"quota_{name}_in_range")


class Quota(HasRights, models.Model):
    """One row per tenant, created with it."""

    database_rights = DatabaseRights(tenant=("SELECT",), worker=("SELECT",))

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, primary_key=True)
    max_running = models.PositiveIntegerField(
        default=5, help_text="Number of runs that may hold a slot at the same time."
    )

    budget = models.JSONField(
        default=dict,
        blank=True,
        help_text='Cost limits for a calendar month (UTC), such as {"tokens": 1000000}; empty for no limit.',
    )

    # Limits of each run, by the names of isolane.limits.RunLimits; executions.selectors.active_run reads them.
    cpu = models.FloatField(
        null=True, blank=True, help_text=f"Processors that a run may use. {_DEFAULT}"
    )
    ram_mb = models.PositiveIntegerField(
        null=True, blank=True, help_text=f"RAM of a run in MiB. {_DEFAULT}"
    )
    processes = models.PositiveIntegerField(
        null=True, blank=True, help_text=f"Processes and threads of a run. {_DEFAULT}"
    )
    disk_mb = models.PositiveIntegerField(
        null=True, blank=True, help_text=f"Files that a run writes, in MiB. {_DEFAULT}"
    )
    open_files = models.PositiveIntegerField(
        null=True, blank=True, help_text=f"Open files of each process of a run. {_DEFAULT}"
    )
    output_kb = models.PositiveIntegerField(
        null=True, blank=True, help_text=f"Log lines of one attempt of a step, in KiB. {_DEFAULT}"
    )
    connections = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=f"Connections of a run through the gate, open at the same time. {_DEFAULT}",
    )
    network_mb = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=f"Data that a run sends and receives through the gate, in MiB. {_DEFAULT}",
    )
    idle_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Seconds without a byte after which a connection through the gate is closed."
        f" {_DEFAULT}",
    )
    max_run_minutes = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Time for which a run may hold a slot. Empty for its blueprint's timeout.",
    )

    class Meta:
        constraints = tuple(_in_range(name) for name in QUOTA_LIMITS)

    def __str__(self) -> str:
        return f"{self.tenant}: {self.max_running} running"

    def clean(self) -> None:
        """Check the budget, for forms; an empty field means no limit."""
        try:
            self.budget = check_budget({} if self.budget is None else self.budget)
        except InvalidInput as error:
            raise ValidationError({"budget": error.detail}) from None

    @property
    def limits(self) -> dict[str, Number]:
        """The limits that are not the platform's defaults, by name."""
        found = {name: getattr(self, name) for name in QUOTA_LIMITS}
        return {name: value for name, value in found.items() if value is not None}
