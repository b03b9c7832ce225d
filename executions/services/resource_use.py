"""The blueprints that use a definition, in the tenant entered."""

from django.db.models import BooleanField, F, Func, JSONField, OuterRef, Subquery, Value

from executions.models import BlueprintVersion
from executions.services.resource_test import blueprint_of

_DECLARES = "$.resources.* ? (@.definition == $name)"


def users_of(definition: str) -> list[str]:
    """Return the names of the blueprints whose newest version declares it, except that of its own test."""
    newest = BlueprintVersion.objects.filter(blueprint=OuterRef("blueprint")).order_by("-number")
    declares = Func(
        F("content"),
        Value(_DECLARES),
        Value({"name": definition}, JSONField()),
        function="jsonb_path_exists",
        template="%(function)s(%(expressions)s)",
        output_field=BooleanField(),
    )
    found = BlueprintVersion.objects.filter(declares, number=Subquery(newest.values("number")[:1]))
    found = found.exclude(blueprint__name=blueprint_of(definition))
    return list(found.order_by("blueprint__name").values_list("blueprint__name", flat=True))
