"""Endpoints for secrets: parse, call one service, render.

Timing: request-time.
Model: sync views in threads.
Guarantee: as the service's; no response holds a secret's value.
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
from resources.api.serializers.secrets import SecretSerializer, ValueSerializer
from resources.models import Secret
from resources.selectors import all_secrets
from resources.services.secrets import delete_secret, put_secret
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class SecretsView(NeedsPermission, GenericAPIView[Secret]):
    """The secrets of the tenant, without their values."""

    permission_by_method: ClassVar = {"GET": Permission.RESOURCE_VIEW}
    serializer_class = SecretSerializer
    queryset = Secret.objects.none()

    @extend_schema(
        operation_id="list_secrets",
        parameters=[PageQuerySerializer],
        responses={200: SecretSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List names and versions of secrets, the newest first; values are never shown."""
        PageQuerySerializer(data=request.query_params.dict()).is_valid(raise_exception=True)
        page = self.paginate_queryset(all_secrets())
        return self.get_paginated_response(SecretSerializer(page, many=True).data)


class SecretView(NeedsPermission, APIView):
    """A secret, write-only."""

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
        """Store a secret: 201 if it is new, 200 if it replaces a value. No response ever holds the value."""
        who = caller(request)
        who.require_tenant_wide(Permission.SECRET_EDIT)
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
        """Delete a secret; refused while a definition refers to it."""
        who = caller(request)
        who.require_tenant_wide(Permission.SECRET_EDIT)
        delete_secret(who.tenant, name, actor=who.name)
        return Response(status=status.HTTP_204_NO_CONTENT)
