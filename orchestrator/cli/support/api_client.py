"""A small client of the REST API, for the demo."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import click

TIMEOUT_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class ApiClient:
    """Call the API as one tenant, with its API key."""

    base_url: str
    api_key: str

    def submit(self, blueprint: str, inputs: dict[str, Any]) -> dict[str, Any]:
        """POST /api/v1/executions."""
        return self._call("executions", {"blueprint": blueprint, "inputs": inputs})

    def execution(self, public_id: str) -> dict[str, Any]:
        """GET /api/v1/executions/{id}."""
        return self._call(f"executions/{public_id}")

    def explanation(self, public_id: str) -> dict[str, Any]:
        """GET /api/v1/executions/{id}/explanation."""
        return self._call(f"executions/{public_id}/explanation")

    def resources(self, public_id: str) -> dict[str, Any]:
        """GET /api/v1/executions/{id}/resources."""
        return self._call(f"executions/{public_id}/resources")

    def questions(self, public_id: str) -> list[dict[str, Any]]:
        """GET /api/v1/approvals: the open questions of a run."""
        found = self._call(f"approvals?execution={public_id}&state=open")
        return list(found["results"])

    def answer(self, question: dict[str, Any], *, approved: bool) -> dict[str, Any]:
        """POST /api/v1/executions/{id}/approvals/{number}/answer."""
        path = f"executions/{question['execution']}/approvals/{question['number']}/answer"
        return self._call(path, {"approved": approved})

    def _call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.base_url}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - likewise
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            raise click.ClickException(f"{path}: {error.code} {error.read().decode()}") from None
        return answer
