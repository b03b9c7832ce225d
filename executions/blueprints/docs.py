"""Writes the reference of blueprints from their schema: `python -m executions.blueprints.docs`, beside docs/.

blueprints.md is prose with a table of fields between each pair of markers; blueprint.schema.json is the schema itself.
"""

import json
import re
from pathlib import Path
from typing import Any

from executions.blueprints.schema.published import (
    DOCUMENT_SCHEMA,
    LIMITS,
    RECOVER,
    RESOURCE,
    RETRY,
    STEP,
)

DOCS = Path("docs")
PAGE = "blueprints.md"
SCHEMA = "blueprint.schema.json"
_TABLES = {
    "blueprint": DOCUMENT_SCHEMA,
    "step": STEP,
    "retry": RETRY,
    "recover": RECOVER,
    "limits": LIMITS,
    "resource": RESOURCE,
}
_MARKED = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with its tables as the schema has them."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{_table(_TABLES[found[2]])}\n{found[3]}", page)


def schema_text() -> str:
    """Return the published schema."""
    return json.dumps(DOCUMENT_SCHEMA, indent=2, ensure_ascii=False) + "\n"


def write(folder: Path) -> None:
    """Bring both files up to date."""
    page = folder / PAGE
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / SCHEMA).write_text(schema_text(), encoding="utf-8")


def _table(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [_row(name, field, name in required) for name, field in schema["properties"].items()]
    return "\n".join(["| field | meaning | default | example |", "|---|---|---|---|", *rows, ""])


def _row(name: str, field: dict[str, Any], is_required: bool) -> str:  # noqa: FBT001 - a column
    default = _code(field["default"]) if "default" in field else ""
    meaning = " ".join([field["description"], *_bounds(field)]).replace("|", "\\|")
    return (
        f"| `{name}` | {meaning} | {'required' if is_required else default}"
        f" | {_code(field['examples'][0])} |"
    )


def _bounds(field: dict[str, Any]) -> list[str]:
    """Return the schema's limits as sentences, which the description does not repeat."""
    bounds = []
    if "enum" in field:
        bounds.append(f"One of {', '.join(_code(choice) for choice in field['enum'])}.")
    if "minimum" in field:
        bounds.append(f"From {field['minimum']} to {field['maximum']}.")
    if "maxLength" in field:
        bounds.append(f"At most {field['maxLength']} characters.")
    if most := field.get("maxProperties", field.get("maxItems")):
        bounds.append(f"At most {most}.")
    return bounds


def _code(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    write(DOCS)
