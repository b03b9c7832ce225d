"""Every answer says what a browser may do with it."""

from django.http import HttpRequest, HttpResponse, JsonResponse

from foundation.browser_rules import NO_PAGE, PAGE, BrowserRulesMiddleware


def answer(response: HttpResponse) -> HttpResponse:
    return BrowserRulesMiddleware(lambda _: response)(HttpRequest())


def test_a_page_loads_nothing_but_own_files() -> None:
    page = answer(HttpResponse("<p>"))
    assert page["Content-Security-Policy"] == PAGE
    assert "unsafe" not in PAGE
    assert "frame-ancestors 'none'" in PAGE


def test_other_answers_load_nothing_and_are_not_stored() -> None:
    data = answer(JsonResponse({}))
    assert data["Content-Security-Policy"] == NO_PAGE
    assert data["Cache-Control"] == "no-store"
    assert data["Vary"] == "Authorization, Cookie"


def test_what_says_how_long_it_may_be_kept_is_let_be() -> None:
    static = answer(HttpResponse("a {}", headers={"Cache-Control": "max-age=60, public"}))
    assert static["Cache-Control"] == "max-age=60, public"
    assert "Vary" not in static
