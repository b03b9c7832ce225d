"""A tenant's limits: runs at once, and costs in a month."""

from django.core.exceptions import ValidationError
from django.db import models

from foundation.errors import InvalidInput
from tenants.budgets import check_budget
from tenants.models.tenant import Tenant
from tenants.rights import DatabaseRights, HasRights


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

    def __str__(self) -> str:
        return f"{self.tenant}: {self.max_running} running"

    def clean(self) -> None:
        """Check the budget, for forms; an empty field means no limit."""
        try:
            self.budget = check_budget({} if self.budget is None else self.budget)
        except InvalidInput as error:
            raise ValidationError({"budget": error.detail}) from None
