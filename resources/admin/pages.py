"""Admin pages for definitions and secrets of one tenant, in its scope, through the same services as the API.

Timing: request-time.
Model: sync views in threads.
Guarantee: as the services'; no page holds the value of a secret.
Failure: errors of a service are shown in the form; all others bubble.
"""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.debug import sensitive_post_parameters

from foundation.errors import IsolaneError, NotFound
from resources.admin.forms import (
    ChangeDefinitionForm,
    DefinitionForm,
    NoForm,
    SecretForm,
    ServiceForm,
)
from resources.selectors import all_definitions, all_secrets, definition
from resources.services.definitions import (
    UsersOf,
    create_definition,
    delete_definition,
    unrouted,
    update_definition,
)
from resources.services.secrets import delete_secret, put_secret
from tenants.models import Tenant
from tenants.scope import TenantRef, tenant_scope
from tenants.statuses import TenantStatus


class TenantPage(View):
    """A page about one tenant, for staff with the permission."""

    right = ""  # a permission of Django, such as view_secret
    tenant: TenantRef

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse users without the permission before the tenant is looked up."""
        if not request.user.has_perm(f"resources.{self.right}"):
            raise PermissionDenied
        self.tenant = get_object_or_404(Tenant, pk=kwargs.pop("tenant_id")).ref
        if self.tenant.status not in TenantStatus.any():
            reason = (
                f"Tenant {self.tenant.schema} is {self.tenant.status.label}; it has no resources."
            )
            messages.error(request, reason)
            return HttpResponseRedirect(
                reverse("admin:tenants_tenant_change", args=[self.tenant.id])
            )
        return super().dispatch(request, *args, **kwargs)

    def show(self, template: str, **context: Any) -> HttpResponse:
        """Render the page within the admin."""
        everywhere = admin.site.each_context(self.request)
        return TemplateResponse(
            self.request,
            f"admin/resources/{template}.html",
            {**everywhere, "tenant": self.tenant, **context},
        )


class ListPage(TenantPage):
    """The definitions of the tenant, and the names of its secrets."""

    right = "view_resourcedefinition"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show both lists."""
        with tenant_scope(self.tenant, allowed=TenantStatus.any()):
            found = {"definitions": list(all_definitions()), "secrets": list(all_secrets())}
        return self.show("list", title=f"Resources of {self.tenant.schema}", **found)


class FormPage(TenantPage):
    """A form that calls a service."""

    title = ""
    done = ""
    form: type[ServiceForm] = NoForm

    def get(self, request: HttpRequest, **names: str) -> HttpResponse:
        """Show the form."""
        return self._show(self.made_form(**names), **names)

    def post(self, request: HttpRequest, **names: str) -> HttpResponse:
        """Call the service; go back to the lists, or show the form again with the errors."""
        form = self.made_form(data=request.POST, **names)
        if not form.is_valid():
            return self._show(form, **names)
        try:
            name = self.save(form, **names)
        except IsolaneError as error:
            form.refuse(error)
            return self._show(form, **names)
        messages.success(request, self.done.format(name=name))
        return HttpResponseRedirect(reverse("tenant-resources", args=[self.tenant.id]))

    @property
    def actor(self) -> str:
        """Name of the user, for the audit trail."""
        return f"user:{self.request.user.get_username()}"

    def made_form(self, data: Any = None, name: str = "") -> ServiceForm:
        """Return the form, filled in or empty."""
        return self.form(data)

    def save(self, form: Any, name: str = "") -> str:
        """Call the service; return the name of the changed object."""
        raise NotImplementedError

    def _show(self, form: ServiceForm, name: str = "") -> HttpResponse:
        return self.show("form", form=form, title=self.title.format(name=name))


class AddPage(FormPage):
    """The form for a new definition."""

    right = "add_resourcedefinition"
    title = "Add a resource"
    done = "The resource {name} was added."
    form = DefinitionForm

    def save(self, form: Any, name: str = "") -> str:
        """Store it."""
        return create_definition(self.tenant, form.wanted(), actor=self.actor).name


class ChangePage(AddPage):
    """The form to change a definition."""

    right = "change_resourcedefinition"
    title = "Change the resource {name}"
    done = "The resource {name} was changed."

    def made_form(self, data: Any = None, name: str = "") -> ServiceForm:
        """Return the form, filled in with the stored definition."""
        try:
            with tenant_scope(self.tenant, allowed=TenantStatus.any()):
                found = definition(name)
        except NotFound:
            raise Http404 from None
        return ChangeDefinitionForm(data, definition=found)

    def save(self, form: Any, name: str = "") -> str:
        """Replace it."""
        return update_definition(self.tenant, form.wanted(), actor=self.actor).name


class DeletePage(FormPage):
    """The confirmation to delete a definition."""

    right = "delete_resourcedefinition"
    title = "Delete the resource {name}?"
    done = "The resource {name} was deleted."
    users_of: UsersOf = staticmethod(unrouted)

    def save(self, form: Any, name: str = "") -> str:
        """Delete it."""
        delete_definition(self.tenant, name, actor=self.actor, users_of=self.users_of)
        return name


@method_decorator(sensitive_post_parameters("value"), name="dispatch")
class SetSecretPage(FormPage):
    """The form to set a secret."""

    right = "change_secret"
    title = "Set a secret"
    done = "The secret {name} was set."
    form = SecretForm

    def save(self, form: Any, name: str = "") -> str:
        """Store it."""
        given = form.cleaned_data
        return put_secret(self.tenant, given["name"], given["value"], actor=self.actor).name


class DeleteSecretPage(FormPage):
    """The confirmation to delete a secret."""

    right = "delete_secret"
    title = "Delete the secret {name}?"
    done = "The secret {name} was deleted."

    def save(self, form: Any, name: str = "") -> str:
        """Delete it."""
        delete_secret(self.tenant, name, actor=self.actor)
        return name
