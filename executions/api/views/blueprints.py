"""Endpoints for blueprints and nodes: parse, call one service, render.

Timing: request-time.
Model: sync views in threads.
Guarantee: as the service's; versions never change.
Failure: bubble, as a problem with the path and line of the error.
"""

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.blueprint_problems import BlueprintProblemsMixin
from executions.api.serializers.blueprints import (
    BlueprintDetailSerializer,
    BlueprintSerializer,
    DiffQuerySerializer,
    DiffSerializer,
    NodesSerializer,
    SourceSerializer,
    ValidatedSerializer,
    VersionDetailSerializer,
)
from executions.blueprints.schema.published import DOCUMENT_SCHEMA
from executions.models import Blueprint
from executions.selectors.blueprints import blueprint_version, blueprints
from executions.services.publishing import catalogue_nodes, diff, store, validate_text
from foundation.openapi import CHECKING, NAME, READING, WRITING
from foundation.serializers import PageQuerySerializer
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class BlueprintsView(NeedsPermission, BlueprintProblemsMixin, GenericAPIView[Blueprint]):
    """The blueprints within the caller's reach."""

    permission_by_method: ClassVar = {
        "GET": Permission.BLUEPRINT_VIEW,
        "POST": Permission.BLUEPRINT_EDIT,
    }
    serializer_class = BlueprintSerializer
    queryset = Blueprint.objects.none()

    @extend_schema(
        operation_id="list_blueprints",
        parameters=[PageQuerySerializer],
        responses={200: BlueprintSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List blueprints, the newest first."""
        PageQuerySerializer(data=request.query_params.dict()).is_valid(raise_exception=True)
        page = self.paginate_queryset(blueprints(caller(request).blueprints))
        return self.get_paginated_response(BlueprintSerializer(page, many=True).data)

    @extend_schema(
        operation_id="publish_blueprint",
        request=SourceSerializer,
        responses={
            200: VersionDetailSerializer,
            201: VersionDetailSerializer,
            **WRITING,
            **CHECKING,
        },
    )
    def post(self, request: Request) -> Response:
        """Check a blueprint and publish it: 201 for a new version, 200 if the same content was published before."""
        document = validate_text(_source(request))
        caller(request).require(Permission.BLUEPRINT_EDIT, document["name"])
        published = store(document)
        version = blueprint_version(published.name, published.number)
        return Response(
            VersionDetailSerializer(version).data,
            status=status.HTTP_201_CREATED if published.is_new else status.HTTP_200_OK,
            headers={"Location": f"{request.path}/{published.name}/versions/{published.number}"},
        )


class BlueprintView(NeedsPermission, APIView):
    """A blueprint."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="get_blueprint",
        parameters=[NAME],
        responses={200: BlueprintDetailSerializer, **READING, **CHECKING},
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the newest version of a blueprint, and a list of its versions."""
        version = blueprint_version(name, reach=caller(request).blueprints)
        return Response(BlueprintDetailSerializer(version).data)


class ValidateView(BlueprintProblemsMixin, BlueprintView):
    """The check of a blueprint; its URL is also that of a blueprint named `validate`."""

    permission_by_method: ClassVar = {
        "GET": Permission.BLUEPRINT_VIEW,
        "POST": Permission.BLUEPRINT_EDIT,
    }

    @extend_schema(exclude=True)
    def get(self, request: Request, name: str = "validate") -> Response:
        """Return the blueprint named `validate`."""
        return super().get(request, name)

    @extend_schema(
        operation_id="validate_blueprint",
        request=SourceSerializer,
        responses={200: ValidatedSerializer, **WRITING, **CHECKING},
    )
    def post(self, request: Request) -> Response:
        """Check a blueprint as for publishing, without storing it."""
        document = validate_text(_source(request))
        caller(request).require(Permission.BLUEPRINT_EDIT, document["name"])
        known = bool(catalogue_nodes())
        return Response({"name": document["name"], "document": document, "nodes_known": known})


class VersionView(NeedsPermission, APIView):
    """A version of a blueprint."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="get_blueprint_version",
        parameters=[NAME],
        responses={200: VersionDetailSerializer, **READING, **CHECKING},
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        """Return a version of a blueprint; versions never change."""
        version = blueprint_version(name, number, caller(request).blueprints)
        return Response(VersionDetailSerializer(version).data)


class DiffView(NeedsPermission, APIView):
    """The difference between two versions of a blueprint."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="diff_blueprint",
        parameters=[NAME, DiffQuerySerializer],
        responses={200: DiffSerializer, **READING, **CHECKING},
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the difference between two versions."""
        blueprint_version(name, reach=caller(request).blueprints)
        query = DiffQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        asked: dict[str, Any] = query.validated_data
        return Response({"name": name, **asked, "diff": diff(name, asked["old"], asked["new"])})


class NodesView(NeedsPermission, APIView):
    """The nodes that steps can use."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(operation_id="list_nodes", responses={200: NodesSerializer, **READING})
    def get(self, request: Request) -> Response:
        """List the nodes that a run submitted now can use; empty until a worker has described its nodes."""
        nodes = sorted(catalogue_nodes().values(), key=lambda node: node.name)
        return Response(NodesSerializer({"results": nodes}).data)


class BlueprintSchemaView(NeedsPermission, APIView):
    """The JSON Schema of blueprints."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="get_blueprint_schema", responses={200: OpenApiTypes.OBJECT, **READING}
    )
    def get(self, request: Request) -> Response:
        """Return the JSON Schema of blueprints, for editors."""
        return Response(DOCUMENT_SCHEMA)


def _source(request: Request) -> str:
    sent = SourceSerializer(data=request.data)
    sent.is_valid(raise_exception=True)
    text: str = sent.validated_data["source"]
    return text
