"""The scope of a connection, and the statement that enters it. Pure."""

from dataclasses import dataclass

NO_ROLE = "none"  # PostgreSQL's word for "the role that logged in"
ASSERT_SCOPE = "SELECT set_config('search_path', %s, false), set_config('role', %s, false)"
# The login decides between the two roles: web's is a member of the first, the workers' of the second.
ASSERT_PLATFORM = """
SELECT set_config('search_path', %s, false),
       set_config('role', CASE WHEN pg_has_role(session_user, %s::name, 'MEMBER') THEN %s ELSE %s END, false)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseScope:
    """The search_path and role of a connection."""

    search_path: str
    role: str
    or_role: str = ""  # entered instead by a login that is not a member of the role

    def statement(self) -> tuple[str, list[str]]:
        """Return the statement and parameters that enter this scope."""
        if self.or_role:
            return ASSERT_PLATFORM, [self.search_path, self.role, self.role, self.or_role]
        return ASSERT_SCOPE, [self.search_path, self.role]


LOGIN_SCOPE = DatabaseScope(search_path="public", role=NO_ROLE)
