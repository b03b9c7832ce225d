"""The endpoint for isolation levels and limits: call one service, render.

Timing: request-time.
Model: sync views in threads.
Guarantee: reads only.
Failure: bubble.
"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.serializers.levels import LevelsSerializer
from executions.services.levels import levels_of
from foundation.openapi import READING
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class LevelsView(NeedsPermission, APIView):
    """The isolation levels that workers offer."""

    permission_by_method: ClassVar = {"GET": Permission.BLUEPRINT_VIEW}

    @extend_schema(operation_id="get_levels", responses={200: LevelsSerializer, **READING})
    def get(self, request: Request) -> Response:
        """Return the levels that workers offer, the level of the tenant's runs, and their limits."""
        return Response(LevelsSerializer(levels_of(caller(request).tenant)).data)
