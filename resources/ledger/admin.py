"""What exists at far sides for runs of all tenants; to read only."""

from django.contrib import admin

from foundation.admin import ReadOnlyAdmin
from resources.ledger.models import Issued


@admin.register(Issued)
class IssuedAdmin(ReadOnlyAdmin):
    """By id only; what could not be revoked comes up with the number of tries."""

    list_display = (
        "far_id",
        "kind",
        "tenant",
        "execution_id",
        "epoch",
        "issued_at",
        "sweeps",
        "swept",
    )
    list_filter = ("kind", "swept", "tenant")
    exclude = ("data",)
