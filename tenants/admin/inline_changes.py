"""Changes that an admin page makes to a tenant's rows, for the audit trail."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SUBJECT_LENGTH = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class InlineChange:
    """One row: created (nothing before), deleted (nothing after) or changed (the fields that differ)."""

    action: str  # tenant.quota or tenant.domain, by the model's name
    subject: str
    before: dict[str, Any]
    after: dict[str, Any]


def changes_in(formset: Any) -> list[InlineChange]:
    """Return the changes that saving this valid formset will make."""
    action = f"tenant.{formset.model._meta.model_name}"
    return [
        InlineChange(
            action=action, subject=str(form.instance)[:SUBJECT_LENGTH], before=before, after=after
        )
        for form, before, after in _differences(formset)
    ]


def _differences(formset: Any) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    for form in formset.forms:
        exists = not form.instance._state.adding
        before = {name: form.initial.get(name) for name in _fields(form)} if exists else {}
        after = {name: getattr(form.instance, name) for name in _fields(form)}
        if form in formset.deleted_forms:
            after = {}
        elif exists:
            before = {name: value for name, value in before.items() if value != after[name]}
            after = {name: after[name] for name in before}
        if form.has_changed() and before != after:
            yield form, before, after


def _fields(form: Any) -> list[str]:
    fields = form.instance._meta.concrete_fields
    return [field.name for field in fields if not field.is_relation and not field.primary_key]
