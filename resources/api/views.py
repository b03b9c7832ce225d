"""Endpoints for definitions, types and secrets: parse, call one service, render.

Timing: request-time. Model: sync views in threads; nothing is opened here. Guarantee: as the service's; no answer holds
the value of a secret. Failure: bubble, as a problem.
"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from resources.api.callers import editor
from resources.api.openapi import NAME, READING, WRITING
from resources.api.serializers import (
    ChangedDefinitionSerializer,
    DefinitionSerializer,
    NewDefinitionSerializer,
    PageSerializer,
    ResourceTypesSerializer,
    SecretSerializer,
    ValueSerializer,
)
from resources.models import ResourceDefinition, Secret
from resources.selectors import all_definitions, all_secrets, definition
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import (
    UsersOf,
    create_definition,
    delete_definition,
    unrouted,
    update_definition,
)
from resources.services.secrets import delete_secret, put_secret
from resources.services.types import resource_types
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class ResourcesView(NeedsPermission, GenericAPIView[ResourceDefinition]):
    """All definitions of the tenant."""

    permission_by_method: ClassVar = {
        "GET": Permission.RESOURCE_VIEW,
        "POST": Permission.RESOURCE_EDIT,
    }
    serializer_class = DefinitionSerializer
    queryset = ResourceDefinition.objects.none()

    @extend_schema(
        operation_id="list_resources",
        parameters=[PageSerializer],
        responses={200: DefinitionSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List definitions, newest first."""
        PageSerializer(data=request.query_params.dict()).is_valid(raise_exception=True)
        page = self.paginate_queryset(all_definitions())
        return self.get_paginated_response(DefinitionSerializer(page, many=True).data)

    @extend_schema(
        operation_id="create_resource",
        request=NewDefinitionSerializer,
        responses={201: DefinitionSerializer, **WRITING},
    )
    def post(self, request: Request) -> Response:
        """Define a resource; nothing is connected to."""
        who = editor(request, Permission.RESOURCE_EDIT)
        sent = NewDefinitionSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        made = create_definition(who.tenant, DefinitionInput(**sent.validated_data), actor=who.name)
        return Response(
            DefinitionSerializer(made).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": f"{request.path}/{made.name}"},
        )


class ResourceView(NeedsPermission, APIView):
    """One definition."""

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
        """Read a definition."""
        return Response(DefinitionSerializer(definition(name)).data)

    @extend_schema(
        operation_id="update_resource",
        parameters=[NAME],
        request=ChangedDefinitionSerializer,
        responses={200: DefinitionSerializer, **WRITING},
    )
    def put(self, request: Request, name: str) -> Response:
        """Replace a definition; its type stays. Runs that have begun keep the one they began with."""
        who = editor(request, Permission.RESOURCE_EDIT)
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
        """Forget a definition that the newest version of no blueprint uses."""
        who = editor(request, Permission.RESOURCE_EDIT)
        delete_definition(who.tenant, name, actor=who.name, users_of=self.users_of)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ResourceTypesView(NeedsPermission, APIView):
    """The types of resources."""

    permission_by_method: ClassVar = {"GET": Permission.RESOURCE_VIEW}

    @extend_schema(
        operation_id="list_resource_types", responses={200: ResourceTypesSerializer, **READING}
    )
    def get(self, request: Request) -> Response:
        """List the types, each with the JSON Schema of its config and the secrets that it takes."""
        return Response(ResourceTypesSerializer({"results": resource_types()}).data)


class SecretsView(NeedsPermission, GenericAPIView[Secret]):
    """The names of the tenant's secrets."""

    permission_by_method: ClassVar = {"GET": Permission.RESOURCE_VIEW}
    serializer_class = SecretSerializer
    queryset = Secret.objects.none()

    @extend_schema(
        operation_id="list_secrets",
        parameters=[PageSerializer],
        responses={200: SecretSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List secrets, newest first: names and versions, no values."""
        PageSerializer(data=request.query_params.dict()).is_valid(raise_exception=True)
        page = self.paginate_queryset(all_secrets())
        return self.get_paginated_response(SecretSerializer(page, many=True).data)


class SecretView(NeedsPermission, APIView):
    """One secret, to be written only."""

    permission_by_method: ClassVar = {
        "PUT": Permission.SECRET_EDIT,
        "DELETE": Permission.SECRET_EDIT,
    }

    @extend_schema(
        operation_id="put_secret",
        parameters=[NAME],
        request=ValueSerializer,
        responses={200: SecretSerializer, 201: SecretSerializer, **WRITING},
    )
    def put(self, request: Request, name: str) -> Response:
        """Store a secret: 201 if it is new, 200 if it replaces one. No answer ever holds the value."""
        who = editor(request, Permission.SECRET_EDIT)
        sent = ValueSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        secret = put_secret(who.tenant, name, sent.validated_data["value"], actor=who.name)
        is_new = secret.version == 1
        return Response(
            SecretSerializer(secret).data,
            status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK,
        )

    @extend_schema(
        operation_id="delete_secret", parameters=[NAME], responses={204: None, **WRITING}
    )
    def delete(self, request: Request, name: str) -> Response:
        """Forget a secret that no definition refers to."""
        who = editor(request, Permission.SECRET_EDIT)
        delete_secret(who.tenant, name, actor=who.name)
        return Response(status=status.HTTP_204_NO_CONTENT)
