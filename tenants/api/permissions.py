"""The permission that each method of a view needs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.errors import Forbidden
from tenants.api.callers import authenticated_caller
from tenants.roles import Permission

if TYPE_CHECKING:
    from rest_framework.views import APIView  # imports this module through DRF's settings


class NeedsPermission:
    """A view that declares a permission for each method; a method without one is refused."""

    permission_by_method: ClassVar[Mapping[str, Permission]] = {}

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """Return the Allow header alone; DRF's own answer would need permissions for each method."""
        return Response({})


class HasTenantPermission(BasePermission):
    """Refuse requests without a caller, and callers without the permission."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return True if the caller may call this method."""
        caller = authenticated_caller(request)
        if caller is None:
            return False
        if request.method == "OPTIONS":
            return True
        method = "GET" if request.method == "HEAD" else request.method or ""
        if not hasattr(view, method.lower()):
            return True  # There is no such method: DRF answers 405, which says more than 403.
        needed: Any = getattr(view, "permission_by_method", {}).get(method)
        if needed is not None and not caller.may(needed):
            raise Forbidden(f"Role {caller.role} lacks {needed}; ask an admin of the tenant.")
        return needed is not None
