"""Endpoints for resource definitions: parse, call one service, render.

Timing: request-time.
Model: sync views in threads; no resource is opened here.
Guarantee: as the service's; no response holds the value of a secret.
Failure: bubble, as a problem.
"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from foundation.openapi import NAME, READING, WRITING
from foundation.serializers import PageQuerySerializer
from resources.api.serializers.definitions import (
    ChangedDefinitionSerializer,
    DefinitionSerializer,
    NewDefinitionSerializer,
)
from resources.models import ResourceDefinition
from resources.selectors import all_definitions, definition
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import (
    UsersOf,
    create_definition,
    delete_definition,
    unrouted,
    update_definition,
)
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class DefinitionsView(NeedsPermission, GenericAPIView[ResourceDefinition]):
    """The definitions of the tenant."""

    permission_by_method: ClassVar = {
        "GET": Permission.RESOURCE_VIEW,
        "POST": Permission.RESOURCE_EDIT,
    }
    serializer_class = DefinitionSerializer
    queryset = ResourceDefinition.objects.none()

    @extend_schema(
        operation_id="list_resources",
        parameters=[PageQuerySerializer],
        responses={200: DefinitionSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List definitions, the newest first."""
        PageQuerySerializer(data=request.query_params.dict()).is_valid(raise_exception=True)
        page = self.paginate_queryset(all_definitions())
        return self.get_paginated_response(DefinitionSerializer(page, many=True).data)

    @extend_schema(
        operation_id="create_resource",
        request=NewDefinitionSerializer,
        responses={201: DefinitionSerializer, **WRITING},
    )
    def post(self, request: Request) -> Response:
        """Define a resource, without connecting to it."""
        who = caller(request)
        who.require_tenant_wide(Permission.RESOURCE_EDIT)
        sent = NewDefinitionSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        created = create_definition(
            who.tenant, DefinitionInput(**sent.validated_data), actor=who.name
        )
        return Response(
            DefinitionSerializer(created).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": f"{request.path}/{created.name}"},
        )


class DefinitionView(NeedsPermission, APIView):
    """A definition."""

    permission_by_method: ClassVar = {
        "GET": Permission.RESOURCE_VIEW,
        "PUT": Permission.RESOURCE_EDIT,
        "DELETE": Permission.RESOURCE_EDIT,
    }
    users_of: UsersOf = staticmethod(unrouted)  # blueprints are above this app

    @extend_schema(
        operation_id="get_resource",
        parameters=[NAME],
        responses={200: DefinitionSerializer, **READING},
    )
    def get(self, request: Request, name: str) -> Response:
        """Return a definition."""
        return Response(DefinitionSerializer(definition(name)).data)

    @extend_schema(
        operation_id="update_resource",
        parameters=[NAME],
        request=ChangedDefinitionSerializer,
        responses={200: DefinitionSerializer, **WRITING},
    )
    def put(self, request: Request, name: str) -> Response:
        """Replace a definition; its type cannot change. Runs that have started keep the previous definition."""
        who = caller(request)
        who.require_tenant_wide(Permission.RESOURCE_EDIT)
        sent = ChangedDefinitionSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        wanted = DefinitionInput(name=name, **sent.validated_data)
        return Response(
            DefinitionSerializer(update_definition(who.tenant, wanted, actor=who.name)).data
        )

    @extend_schema(
        operation_id="delete_resource", parameters=[NAME], responses={204: None, **WRITING}
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete a definition; refused while the newest version of a blueprint uses it."""
        who = caller(request)
        who.require_tenant_wide(Permission.RESOURCE_EDIT)
        delete_definition(who.tenant, name, actor=who.name, users_of=self.users_of)
        return Response(status=status.HTTP_204_NO_CONTENT)
