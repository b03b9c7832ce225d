"""The admin page of the ledger: credentials at remote servers, of all tenants; read-only."""

from django.contrib import admin

from foundation.admin import ReadOnlyAdmin
from resources.ledger.models import IssuedCredential


@admin.register(IssuedCredential)
class IssuedCredentialAdmin(ReadOnlyAdmin):
    """Lists names only; failed revocations show their number of attempts."""

    list_display = (
        "remote_id",
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
