"""Admin of tenants and quotas; every change goes through a service."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from foundation.errors import InvalidInput, IsolaneError
from tenants.admin.inline_changes import changes_in
from tenants.isolation import Isolation
from tenants.models import Domain, Quota, Tenant
from tenants.names import check_schema_name
from tenants.run_limits import QUOTA_LIMITS
from tenants.services.audit import record
from tenants.services.tenants import MAX_RUNNING, create_tenant, set_status
from tenants.statuses import TenantStatus

FORM_FIELDS = ("schema_name", "name", "trusted", "required_isolation")


class TenantForm(forms.ModelForm[Tenant]):
    """Checks the schema name before anything is created."""

    reuse_name = forms.BooleanField(
        required=False,
        help_text="Reuse the name of a deleted tenant; the new one can read env: and file: secrets that it left.",
    )

    class Meta:
        model = Tenant
        fields = FORM_FIELDS

    def clean_schema_name(self) -> str:
        """Apply the rule for schema names."""
        name: str = self.cleaned_data["schema_name"]
        if self.instance.pk:
            return name
        try:
            return check_schema_name(name)
        except InvalidInput as error:
            raise forms.ValidationError(error.detail) from None


class QuotaForm(forms.ModelForm[Quota]):
    """Quotas within their range."""

    max_running = forms.IntegerField(min_value=1, max_value=MAX_RUNNING)

    class Meta:
        model = Quota
        fields = ("max_running", "budget", *QUOTA_LIMITS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, bounds in QUOTA_LIMITS.items():
            field = self.fields[name]
            field.validators += [MinValueValidator(bounds.least), MaxValueValidator(bounds.most)]


class QuotaInline(admin.StackedInline[Quota, Tenant]):
    """The quota of a tenant; exactly one."""

    model = Quota
    form = QuotaForm
    can_delete = False
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Tenant | None = None) -> bool:
        """Refuse: the quota is created with the tenant."""
        return False


class DomainInline(admin.TabularInline[Domain, Tenant]):
    """The host names of a tenant."""

    model = Domain
    extra = 0


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin[Tenant]):
    """Create, change, suspend, resume and delete tenants."""

    form = TenantForm
    list_display = (
        "schema_name",
        "name",
        "status",
        "trusted",
        "required_isolation",
        "max_running",
        "created_at",
        "provisioning_error",
    )
    list_filter = ("status", "trusted", "required_isolation")
    search_fields = ("schema_name", "name")
    readonly_fields = ("status", "provisioning_error", "schema_version", "created_at")
    actions = ("suspend", "resume")
    delete_confirmation_template = "admin/tenants/tenant/delete_confirmation.html"

    @admin.display(description="max running", ordering="quota__max_running")
    def max_running(self, tenant: Tenant) -> int:
        """The limit of the tenant's quota."""
        return int(tenant.quota.max_running)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        """Include quotas, for the list."""
        return super().get_queryset(request).select_related("quota")

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        """Make the schema name read-only: a schema keeps its name."""
        return (*self.readonly_fields, "schema_name") if obj else self.readonly_fields

    def get_fields(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        """Offer `reuse_name` for a new tenant, and the status for an existing one."""
        return (*FORM_FIELDS, *self.readonly_fields) if obj else (*FORM_FIELDS, "reuse_name")

    def get_inlines(self, request: HttpRequest, obj: Tenant | None) -> Any:
        """Offer quota and domains for an existing tenant; they are created with it."""
        return [QuotaInline, DomainInline] if obj else []

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Save the form's fields only, since a provisioner writes to the row, too; or create a tenant."""
        actor = f"user:{request.user.get_username()}"
        if change:
            obj.save(update_fields=[name for name in form.cleaned_data if name in FORM_FIELDS])
            record(
                action="tenant.change",
                actor=actor,
                tenant=obj.ref,
                fields=sorted(form.changed_data),
            )
            return
        made = create_tenant(
            schema=obj.schema_name,
            name=obj.name,
            trusted=obj.trusted,
            required_isolation=Isolation(obj.required_isolation),
            reuse_name=form.cleaned_data["reuse_name"],
            actor=actor,
        )
        obj.pk = made.id
        obj._state.adding = False
        message = (
            f"Tenant {obj.schema_name} is being created; it accepts work once its status is active."
        )
        self.message_user(request, message, messages.INFO)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Record changes of quota and domains in the same transaction."""
        changes = changes_in(formset)
        super().save_formset(request, form, formset, change)
        actor = f"user:{request.user.get_username()}"
        for changed in changes:
            record(
                action=changed.action,
                actor=actor,
                tenant=form.instance.ref,
                subject=changed.subject,
                before=changed.before,
                after=changed.after,
            )

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show a service's refusal instead of an error page."""
        try:
            return super().add_view(request, form_url, extra_context)
        except IsolaneError as error:
            self.message_user(request, error.detail, messages.ERROR)
            return HttpResponseRedirect(request.path)

    # --- statuses
    @admin.action(description="Suspend: accept no new work", permissions=["change"])
    def suspend(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        """Suspend the chosen tenants."""
        self._set_status(request, queryset, TenantStatus.SUSPENDED)

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        """Let the chosen tenants accept work again."""
        self._set_status(request, queryset, TenantStatus.ACTIVE)

    def _set_status(
        self, request: HttpRequest, queryset: QuerySet[Tenant], status: TenantStatus
    ) -> None:
        for tenant in queryset:
            try:
                set_status(
                    schema=tenant.schema_name,
                    status=status,
                    actor=f"user:{request.user.get_username()}",
                )
            except IsolaneError as error:
                self.message_user(request, error.detail, messages.ERROR)
            else:
                message = f"Tenant {tenant.schema_name} is {status}."
                self.message_user(request, message, messages.SUCCESS)

    # --- deletion asks for the name, and happens in the background
    def get_actions(self, request: HttpRequest) -> Any:
        """Leave out deletion in bulk."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the tenant instead of listing its tables: all of them are dropped."""
        return [f"Everything of {tenant.schema_name}" for tenant in objs], {}, set(), []

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Go on only if the schema name was typed."""
        tenant = self.get_object(request, object_id)
        if not self.has_delete_permission(request, tenant):
            raise PermissionDenied
        if (
            request.method == "POST"
            and tenant
            and request.POST.get("confirm_name") != tenant.schema_name
        ):
            self.message_user(
                request,
                f"Nothing was deleted: type {tenant.schema_name} to confirm.",
                messages.ERROR,
            )
            return HttpResponseRedirect(request.path)
        return super().delete_view(request, object_id, extra_context)

    def delete_model(self, request: HttpRequest, obj: Tenant) -> None:
        """Begin the deletion; workers stop the tenant's runs, then a provisioner drops its schema and role."""
        actor = f"user:{request.user.get_username()}"
        set_status(schema=obj.schema_name, status=TenantStatus.DELETING, actor=actor)
