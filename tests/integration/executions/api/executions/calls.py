"""Requests for runs, as a caller sends them."""

from typing import Any

from django.test import Client

RUNS = "/api/v1/executions"
ORDER = {"blueprint": "order", "inputs": {"order_id": 7}}


def post(client: Client, body: Any = ORDER, path: str = RUNS, **headers: str) -> Any:
    return client.post(path, body, content_type="application/json", headers=headers)


def listed(client: Client, query: str = "") -> list[str]:
    return [run["id"] for run in client.get(RUNS + query).json()["results"]]
