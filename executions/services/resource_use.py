"""Which blueprints use a tenant's definition, in the tenant entered."""

from django.db.models import BooleanField, F, Func, JSONField, OuterRef, Subquery, Value

from executions.models import BlueprintVersion
from executions.services.resource_test import blueprint_of

_DECLARES = "$.resources.* ? (@.definition == $name)"


def users_of(definition: str) -> list[str]:
    """The blueprints whose newest version declares it, by name; but for the one that only tries it out."""
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
