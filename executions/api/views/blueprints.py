"""Endpoints for blueprints and the nodes that they use: parse, call one service, render.

Timing: request-time. Model: sync views in threads. Guarantee: as the service's; versions never change.
Failure: bubble, as a problem with the path and line of what does not fit.
"""

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.blueprint_problems import PlacedProblems
from executions.api.openapi import BLUEPRINT_NAME, CHECKING, READING, WRITING
from executions.api.serializers.blueprints import (
    BlueprintDetailSerializer,
    BlueprintSerializer,
    BlueprintsQuerySerializer,
    DiffQuerySerializer,
    DiffSerializer,
    NodesSerializer,
    SourceSerializer,
    ValidatedSerializer,
    VersionDetailSerializer,
)
from executions.blueprints.schema.published import DOCUMENT_SCHEMA
from executions.models import Blueprint
from executions.selectors.executions import blueprint_version, blueprints
from executions.services.publishing import catalogue_nodes, diff, store, validate_text
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class BlueprintsView(NeedsPermission, PlacedProblems, GenericAPIView[Blueprint]):
    """All blueprints of the tenant that the caller reaches."""

    permission_by_method: ClassVar = {
        "GET": Permission.BLUEPRINT_VIEW,
        "POST": Permission.BLUEPRINT_EDIT,
    }
    serializer_class = BlueprintSerializer
    queryset = Blueprint.objects.none()

    @extend_schema(
        operation_id="list_blueprints",
        parameters=[BlueprintsQuerySerializer],
        responses={200: BlueprintSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List blueprints, newest first."""
        BlueprintsQuerySerializer(data=request.query_params.dict()).is_valid(raise_exception=True)
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
        """Check a blueprint and publish it: 201 as the next version, 200 if it was already published."""
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
    """One blueprint."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="get_blueprint",
        parameters=[BLUEPRINT_NAME],
        responses={200: BlueprintDetailSerializer, **READING, **CHECKING},
    )
    def get(self, request: Request, name: str) -> Response:
        """Read a blueprint's newest version, and which others there are."""
        version = blueprint_version(name, reach=caller(request).blueprints)
        return Response(BlueprintDetailSerializer(version).data)


class ValidateView(PlacedProblems, BlueprintView):
    """Checking a blueprint; its address is also that of a blueprint with the name `validate`."""

    permission_by_method: ClassVar = {
        "GET": Permission.BLUEPRINT_VIEW,
        "POST": Permission.BLUEPRINT_EDIT,
    }

    @extend_schema(exclude=True)
    def get(self, request: Request, name: str = "validate") -> Response:
        """Read the blueprint of that name."""
        return super().get(request, name)

    @extend_schema(
        operation_id="validate_blueprint",
        request=SourceSerializer,
        responses={200: ValidatedSerializer, **WRITING, **CHECKING},
    )
    def post(self, request: Request) -> Response:
        """Check a blueprint as for publishing, and store nothing."""
        document = validate_text(_source(request))
        caller(request).require(Permission.BLUEPRINT_EDIT, document["name"])
        known = bool(catalogue_nodes())
        return Response({"name": document["name"], "document": document, "nodes_known": known})


class VersionView(NeedsPermission, APIView):
    """One version of a blueprint."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="get_blueprint_version",
        parameters=[BLUEPRINT_NAME],
        responses={200: VersionDetailSerializer, **READING, **CHECKING},
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        """Read a version; it never changes."""
        version = blueprint_version(name, number, caller(request).blueprints)
        return Response(VersionDetailSerializer(version).data)


class DiffView(NeedsPermission, APIView):
    """Two versions of a blueprint."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="diff_blueprint",
        parameters=[BLUEPRINT_NAME, DiffQuerySerializer],
        responses={200: DiffSerializer, **READING, **CHECKING},
    )
    def get(self, request: Request, name: str) -> Response:
        """Say what changed from one version to another."""
        blueprint_version(name, reach=caller(request).blueprints)
        query = DiffQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        asked: dict[str, Any] = query.validated_data
        return Response({"name": name, **asked, "diff": diff(name, asked["old"], asked["new"])})


class NodesView(NeedsPermission, APIView):
    """The catalogue."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(operation_id="list_nodes", responses={200: NodesSerializer, **READING})
    def get(self, request: Request) -> Response:
        """List the nodes that a run submitted now can use; none until a worker has described its own."""
        nodes = sorted(catalogue_nodes().values(), key=lambda node: node.name)
        return Response(NodesSerializer({"results": nodes}).data)


class BlueprintSchemaView(NeedsPermission, APIView):
    """The JSON Schema of blueprints."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(
        operation_id="get_blueprint_schema", responses={200: OpenApiTypes.OBJECT, **READING}
    )
    def get(self, request: Request) -> Response:
        """Read the schema that every blueprint must fit, for editors."""
        return Response(DOCUMENT_SCHEMA)


def _source(request: Request) -> str:
    sent = SourceSerializer(data=request.data)
    sent.is_valid(raise_exception=True)
    text: str = sent.validated_data["source"]
    return text
