"""The URLs of web."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from executions.services.resource_use import users_of
from resources.admin.urls import tenant_pages
from resources.api.urls import resource_urls


class OpenApiView(SpectacularAPIView):
    """The OpenAPI document. There is one version, and the requested version must not reach a header."""

    # By format: writing it is slow, and it needs no login.
    written: ClassVar[dict[str, bytes]] = {}

    def _get_version_parameter(self, request: HttpRequest) -> None:
        return None

    @extend_schema(exclude=True)
    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the document, the same for all, written once for each format."""
        renderer = request.accepted_renderer
        if renderer.format not in self.written:
            made = self._get_schema_response(request)  # type: ignore[no-untyped-call]  # theirs
            context = self.get_renderer_context()
            self.written[renderer.format] = renderer.render(made.data, renderer.media_type, context)
        return HttpResponse(
            self.written[renderer.format],
            content_type=f"{renderer.media_type}; charset={renderer.charset}",
            headers={"Content-Disposition": f'inline; filename="Isolane.{renderer.format}"'},
        )


class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI without inline scripts and styles, which the content security policy forbids."""

    template_name = "api_docs.html"


urlpatterns = [
    path("", RedirectView.as_view(url="/api/docs/")),
    path("admin/tenants/tenant/<int:tenant_id>/", include(tenant_pages(users_of))),
    path("admin/", admin.site.urls),
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("api/v1/", include("executions.api.urls")),
    path("api/v1/", include(resource_urls(users_of))),
    path("api/schema/", OpenApiView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(url_name="schema"), name="docs"),
]
handler400 = "foundation.problems.bad_request"
handler403 = "foundation.problems.permission_denied"
handler404 = "foundation.problems.not_found"
handler500 = "foundation.problems.server_error"
