"""Copying the template schema: read the catalogue, write the statements, refuse what cannot be copied.

django-tenants' clone_schema silently loses fill factors and the foreign keys of partitioned tables. Here the
definitions come from PostgreSQL's own pg_get_*() functions, read with only the template on the search_path, so that
names come out unqualified and no text has to be replaced.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.backends.utils import CursorWrapper
from psycopg import sql

from foundation.errors import IsolaneError

TABLES = """
SELECT c.oid, c.relname, c.reloptions, pg_get_partkeydef(c.oid), parent.relname,
       pg_get_expr(c.relpartbound, c.oid), c.relpersistence = 'u'
FROM pg_class c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p')
ORDER BY c.relispartition, c.oid"""

COLUMNS = """
SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
       pg_get_expr(d.adbin, d.adrelid),
       CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(n.nspname) || '.' || quote_ident(l.collname) END,
       CASE WHEN a.attstorage <> t.typstorage
            THEN CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'x' THEN 'EXTENDED'
                 ELSE 'MAIN' END
       END
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p') AND NOT c.relispartition
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_namespace n ON n.oid = l.collnamespace
WHERE c.relnamespace = %(schema)s::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum"""

# Not-null constraints ('n', PostgreSQL 18) come with the columns; those of partitions come with their parents.
CONSTRAINTS = """
SELECT t.relname, k.conname, pg_get_constraintdef(k.oid, true)
FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
WHERE k.connamespace = %(schema)s::regnamespace AND k.contype IN ('p', 'u', 'x', 'c', 'f') AND k.conparentid = 0
  AND (k.conislocal OR k.contype <> 'c')
ORDER BY k.contype = 'f', k.contype, t.relname, k.conname"""

# The definition of a constraint leaves out its index's storage parameters.
CONSTRAINT_STORAGE = """
SELECT x.relname, x.reloptions
FROM pg_constraint k JOIN pg_class x ON x.oid = k.conindid
WHERE k.connamespace = %(schema)s::regnamespace AND k.contype IN ('p', 'u', 'x') AND x.reloptions IS NOT NULL
ORDER BY x.relname"""

# The definition of a partitioned table's index is ON ONLY that table: those of its partitions are attached to it.
INDEXES = """
SELECT pg_get_indexdef(i.indexrelid, 0, true), x.relname, parent.relname
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
LEFT JOIN pg_inherits h ON h.inhrelid = x.oid LEFT JOIN pg_class parent ON parent.oid = h.inhparent
WHERE x.relnamespace = %(schema)s::regnamespace
  AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
ORDER BY x.relname"""

TRIGGERS = """
SELECT pg_get_triggerdef(g.oid, true)
FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid
WHERE t.relnamespace = %(schema)s::regnamespace AND NOT g.tgisinternal AND g.tgparentid = 0 ORDER BY g.tgname"""

# Everything a schema can hold that the statements above do not describe.
UNKNOWN = """
SELECT 'relation ' || c.relname FROM pg_class c
WHERE c.relnamespace = %(schema)s::regnamespace AND (c.relkind IN ('v', 'm', 'f', 'c') OR c.relrowsecurity
  OR c.relkind = 'r' AND NOT c.relispartition AND EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid)
  OR c.relkind = 'S' AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'i'))
UNION ALL SELECT 'function ' || p.proname FROM pg_proc p WHERE p.pronamespace = %(schema)s::regnamespace
UNION ALL SELECT 'type ' || t.typname FROM pg_type t WHERE t.typnamespace = %(schema)s::regnamespace
  AND t.typtype IN ('e', 'd', 'r', 'm')
UNION ALL SELECT 'statistics ' || s.stxname FROM pg_statistic_ext s WHERE s.stxnamespace = %(schema)s::regnamespace
UNION ALL SELECT 'rule ' || r.rulename FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
  WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p')
UNION ALL SELECT 'comment on ' || c.relname FROM pg_description d JOIN pg_class c ON c.oid = d.objoid
  WHERE d.classoid = 'pg_class'::regclass AND c.relnamespace = %(schema)s::regnamespace"""


class CannotClone(IsolaneError):
    """The template holds an object that the copy would lose."""

    code = "cannot_clone"


@dataclass(frozen=True, kw_only=True, slots=True)
class Schema:
    """The definitions in one schema, as rows of the catalogue."""

    tables: list[tuple[Any, ...]]
    columns: list[tuple[Any, ...]]
    constraints: list[tuple[Any, ...]]
    constraint_storage: list[tuple[Any, ...]]
    indexes: list[tuple[Any, ...]]
    triggers: list[tuple[Any, ...]]


def read_schema(cursor: CursorWrapper, schema: str) -> Schema:
    """Read the definitions of a schema; must run in a transaction (it narrows the search_path to the schema)."""
    name = {"schema": f'"{schema}"'}
    cursor.execute("SELECT set_config('search_path', %(schema)s, true)", name)

    def rows(query: str) -> list[tuple[Any, ...]]:
        cursor.execute(query, name)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    if unknown := rows(UNKNOWN):
        listed = ", ".join(row[0] for row in unknown)
        raise CannotClone(f"Schema {schema!r} holds objects that cloning does not copy: {listed}.")
    return Schema(
        tables=rows(TABLES),
        columns=rows(COLUMNS),
        constraints=rows(CONSTRAINTS),
        constraint_storage=rows(CONSTRAINT_STORAGE),
        indexes=rows(INDEXES),
        triggers=rows(TRIGGERS),
    )


def statements(schema: Schema) -> Iterator[str]:
    """Write the statements that create these definitions in the first schema on the search_path. Pure."""
    columns: dict[int, list[str]] = {}
    for table_oid, *column in schema.columns:
        columns.setdefault(table_oid, []).append(_column(*column))
    for oid, name, options, partition_key, parent, bound, unlogged in schema.tables:
        head = f"CREATE {'UNLOGGED ' if unlogged else ''}TABLE {_quote(name)}"
        body = (
            f" PARTITION OF {_quote(parent)} {bound}"
            if parent
            else f" ({', '.join(columns.get(oid, []))})"
        )
        tail = f" PARTITION BY {partition_key}" if partition_key else ""
        storage = f" WITH ({', '.join(options)})" if options else ""
        yield head + body + tail + storage
    for table, constraint, definition in schema.constraints:
        yield f"ALTER TABLE {_quote(table)} ADD CONSTRAINT {_quote(constraint)} {definition}"
    for index, options in schema.constraint_storage:
        yield f"ALTER INDEX {_quote(index)} SET ({', '.join(options)})"
    for definition, _, _ in schema.indexes:
        yield definition
    for _, index, parent in schema.indexes:
        if parent:
            yield f"ALTER INDEX {_quote(parent)} ATTACH PARTITION {_quote(index)}"
    for (definition,) in schema.triggers:
        yield definition


def _column(
    name: str,
    type_: str,
    not_null: bool,  # noqa: FBT001 - a row of the catalogue, in its order
    identity: str,
    generated: str,
    default: str | None,
    collation: str | None,
    storage: str | None,
) -> str:
    parts = [_quote(name), type_]
    if storage:
        parts.append(f"STORAGE {storage}")
    if collation:
        parts.append(f"COLLATE {collation}")
    if identity:
        parts.append(f"GENERATED {'ALWAYS' if identity == 'a' else 'BY DEFAULT'} AS IDENTITY")
    elif generated:
        parts.append(
            f"GENERATED ALWAYS AS ({default}) {'STORED' if generated == 's' else 'VIRTUAL'}"
        )
    elif default:
        parts.append(f"DEFAULT {default}")
    if not_null:
        parts.append("NOT NULL")
    return " ".join(parts)


def _quote(name: str) -> str:
    return sql.Identifier(name).as_string()
