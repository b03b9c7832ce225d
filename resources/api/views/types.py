"""The endpoint for types of resources."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from foundation.openapi import READING
from resources.api.serializers.types import ResourceTypesSerializer
from resources.services.types import resource_types
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class ResourceTypesView(NeedsPermission, APIView):
    """The types of resources."""

    permission_by_method: ClassVar = {"GET": Permission.RESOURCE_VIEW}

    @extend_schema(
        operation_id="list_resource_types", responses={200: ResourceTypesSerializer, **READING}
    )
    def get(self, request: Request) -> Response:
        """List the types of resources, each with the JSON Schema of its config and the secrets it takes."""
        return Response(ResourceTypesSerializer({"results": resource_types()}).data)
