"""Rights on the tables of public, as PostgreSQL itself sees them."""

import psycopg
import pytest

from tenants.grants import shared_tables
from tenants.scope import TenantRef

Server = psycopg.Connection[tuple[object, ...]]
PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")

# Everything that is granted; a table that is not named here is closed.
LOGIN = {
    "tenants_tenant": {"SELECT"},
    "tenants_domain": {"SELECT"},
    "tenants_membership": {"SELECT"},
    "tenants_apikey": {"SELECT"},
    "tenants_user": {"SELECT"},
    "django_session": {"SELECT", "INSERT", "UPDATE", "DELETE"},
}
TENANT = {
    "tenants_auditentry": {"SELECT", "INSERT"},
    "tenants_quota": {"SELECT"},
    "placement_ticket": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "placement_catalogue": {"SELECT"},
    "placement_due": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "ledger_issuedcredential": {"SELECT", "INSERT", "UPDATE", "DELETE"},
}
# In the platform role of workers.
WORKER = {
    "tenants_tenant": {"SELECT"},
    "tenants_quota": {"SELECT"},
    "placement_ticket": {"SELECT", "UPDATE", "DELETE"},
    "placement_worker": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "placement_catalogue": {"SELECT", "INSERT"},
    "placement_due": {"SELECT", "UPDATE"},
    "ledger_issuedcredential": {"SELECT", "DELETE"},
}


def granted(superuser: Server, role: str) -> dict[str, set[str]]:
    """Return a role's rights on the tables of public, its memberships included."""
    rows = superuser.execute(
        """SELECT c.relname, p FROM pg_class c, unnest(%(privileges)s::text[]) p
           WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
             AND c.relname NOT LIKE 'pg_stat_statements%%' AND has_table_privilege(%(role)s, c.oid, p)""",
        {"privileges": list(PRIVILEGES), "role": role},
    )
    found: dict[str, set[str]] = {}
    for table, privilege in rows.fetchall():
        found.setdefault(str(table), set()).add(str(privilege))
    return found


def column_grants(superuser: Server, role: str) -> set[tuple[object, ...]]:
    rows = superuser.execute(
        """SELECT c.relname, a.attname, x.privilege_type
           FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid, aclexplode(a.attacl) x
           WHERE c.relnamespace = 'public'::regnamespace AND x.grantee = %s::regrole""",
        [role],
    )
    return set(rows.fetchall())


@pytest.mark.usefixtures("acme", "globex")
def test_the_login_role_can_look_tenants_up_and_sign_people_in(superuser: Server) -> None:
    assert granted(superuser, "isolane_login") == LOGIN
    assert column_grants(superuser, "isolane_login") == {
        ("tenants_user", "last_login", "UPDATE"),
        ("tenants_user", "password", "UPDATE"),
    }


@pytest.mark.usefixtures("acme", "globex")
def test_a_worker_has_what_its_work_needs_and_nothing_outside_of_it(superuser: Server) -> None:
    assert granted(superuser, "isolane_worker_platform") == WORKER
    noted = ("status", "provisioning_error", "provisioning_failures", "provisioning_after")
    assert column_grants(superuser, "isolane_worker_platform") == {
        ("placement_catalogue", "offered_at", "UPDATE"),
        *(("tenants_tenant", column, "UPDATE") for column in noted),
    }
    assert column_grants(superuser, "isolane_worker") == set()
    rows = superuser.execute(
        """SELECT c.relname FROM pg_class c, aclexplode(c.relacl) x WHERE x.grantee = 'isolane_worker'::regrole"""
    )
    assert rows.fetchall() == []


def test_a_tenants_role_has_what_a_run_needs(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    for role in ("isolane_tenants", f"isolane_t_{acme.id}", f"isolane_t_{globex.id}"):
        assert granted(superuser, role) == TENANT
        assert column_grants(superuser, role) == set()


@pytest.mark.usefixtures("acme", "globex")
def test_nothing_is_granted_to_everybody(superuser: Server) -> None:
    assert granted(superuser, "public") == {}
    assert superuser.execute(
        "SELECT has_schema_privilege('public', 'public', 'CREATE'), "
        "has_database_privilege('public', 'isolane', 'CONNECT')"
    ).fetchone() == (False, False)


@pytest.mark.usefixtures("acme", "globex")
def test_sequences_are_the_platforms(superuser: Server) -> None:
    rows = superuser.execute(
        """SELECT r, c.relname
           FROM pg_class c, unnest(ARRAY['isolane_login', 'isolane_tenants', 'isolane_worker_platform']) r
           WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S'
             AND has_sequence_privilege(r, c.oid, 'USAGE, SELECT, UPDATE')"""
    )
    assert rows.fetchall() == [("isolane_worker_platform", "placement_dirty")]


@pytest.mark.usefixtures("acme", "globex")
def test_the_platform_may_use_every_table_but_change_none(superuser: Server) -> None:
    rights = granted(superuser, "isolane_platform")
    assert set(rights) >= {table for table, _, _ in shared_tables()}
    assert all(right == {"SELECT", "INSERT", "UPDATE", "DELETE"} for right in rights.values())


def tables_with_tenants_rows() -> set[str]:
    return {table for table, has_tenant_id, _ in shared_tables() if has_tenant_id}


@pytest.mark.usefixtures("acme", "globex")
def test_the_models_tell_of_every_table_with_tenants_rows(superuser: Server) -> None:
    rows = superuser.execute(
        "SELECT table_name FROM information_schema.columns "
        "WHERE table_schema = 'public' AND column_name = 'tenant_id'"
    )
    found = {str(row[0]) for row in rows.fetchall()}
    assert found == tables_with_tenants_rows() >= {"placement_ticket", "tenants_apikey"}


@pytest.mark.usefixtures("acme", "globex")
def test_rows_of_tenants_are_secured_row_by_row(superuser: Server) -> None:
    rows = superuser.execute(
        """SELECT c.relname, p.policyname, p.cmd, p.roles::text[], p.qual, p.with_check
           FROM pg_class c JOIN pg_policies p ON p.tablename = c.relname AND p.schemaname = 'public'
           WHERE c.relnamespace = 'public'::regnamespace AND c.relrowsecurity"""
    )
    policies: dict[str, dict[object, tuple[object, ...]]] = {}
    for table, policy, *said in rows.fetchall():
        policies.setdefault(str(table), {})[policy] = tuple(said)
    own = "(tenant_id = ( SELECT isolane_tenant_id() AS isolane_tenant_id))"
    changed = "((status)::text = ANY ((ARRAY['deleting'::character varying, 'purging'::character varying])::text[]))"
    assert policies.pop("tenants_tenant") == {
        "platform_rows": ("ALL", ["isolane_platform"], "true", "true"),
        "login_rows": ("SELECT", ["isolane_login"], "true", None),
        "worker_rows": ("SELECT", ["isolane_worker_platform"], "true", None),
        "worker_changes": ("UPDATE", ["isolane_worker_platform"], changed, changed),
    }
    assert set(policies) == tables_with_tenants_rows()
    for table, found in policies.items():
        expected: dict[object, tuple[object, ...]] = {
            "tenant_rows": ("ALL", ["isolane_tenants"], own, own),
            "platform_rows": ("ALL", ["isolane_platform"], "true", "true"),
        }
        if table in LOGIN:
            expected["login_rows"] = ("SELECT", ["isolane_login"], "true", None)
        if table in WORKER:
            expected["worker_rows"] = ("ALL", ["isolane_worker_platform"], "true", "true")
        assert found == expected, table
