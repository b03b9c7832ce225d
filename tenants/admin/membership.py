"""Admin of memberships."""

from django.contrib import admin

from tenants.models import Membership


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin[Membership]):
    """Members of tenants; one role per person and tenant."""

    list_display = ("user", "tenant", "role", "blueprints")
    list_filter = ("tenant", "role")
    autocomplete_fields = ("tenant",)
    raw_id_fields = ("user",)  # only superusers may look through the users
