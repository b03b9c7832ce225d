"""Flower's pages that know no login are found whatever way it lists them."""

from flower import urls
from tornado.web import RequestHandler, url

from orchestrator.flower import OPEN_PATHS, path_of


def test_both_kinds_of_entries_have_a_path() -> None:
    assert path_of(("/metrics", RequestHandler)) == "/metrics"
    assert path_of(url(r"/tasks", RequestHandler)) == "/tasks"


def test_the_open_pages_are_among_those_of_the_installed_flower() -> None:
    assert {path_of(handler) for handler in urls.handlers} >= OPEN_PATHS
