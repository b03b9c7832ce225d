"""The login at a PostgreSQL server, from a grant; and which startup packets of a run go with it. Pure."""

from dataclasses import dataclass, field
from functools import cached_property

from isolane.protocol import Grant
from isolane.providers.database import DatabaseConfig
from isolane.shapes import build
from resources.gate.brokers.postgres_messages import Parameters, StartupPacket
from resources.gate.brokers.postgres_refusal import PostgresRefusal
from resources.gate.brokers.postgres_scram import prepared
from resources.gate.brokers.streams import Proof
from resources.gate.record import ConnectionReason

# Settings that clients send when they connect; any other can be set in `options` or by SET.
PASSED_ON = frozenset({
    b"application_name", b"bytea_output", b"client_encoding", b"client_min_messages", b"datestyle",
    b"default_transaction_isolation", b"default_transaction_read_only", b"extra_float_digits", b"geqo",
    b"idle_in_transaction_session_timeout", b"intervalstyle", b"jit", b"lock_timeout", b"options", b"search_path",
    b"standard_conforming_strings", b"statement_timeout", b"synchronous_commit", b"timezone", b"work_mem",
})  # fmt: skip
_OPTION = b"_pq_."  # begins names of options of the protocol itself
_PROOFS = {
    "allow": Proof.NOTHING,
    "prefer": Proof.NOTHING,
    "require": Proof.NAME,
    "verify-ca": Proof.CHAIN,
    "verify-full": Proof.NAME,
}


@dataclass(frozen=True, kw_only=True)
class PostgresLogin:
    """The server, the database and the user of a resource."""

    host: str
    port: int
    user: str
    dbname: str
    password: str = field(repr=False)
    sslmode: str
    ca: str
    connect_timeout_s: int

    @cached_property
    def prepared_password(self) -> bytes:
        """Return the password for SCRAM; made once, since it takes the interpreter some time."""
        return prepared(self.password)

    @property
    def place(self) -> str:
        """The server, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def proof(self) -> Proof | None:
        """The extent of what the certificate must prove; None where TLS is not even tried.

        `require` proves more than in libpq: no password goes to a server that has not proved its name.
        """
        return _PROOFS.get(self.sslmode)

    @property
    def needs_tls(self) -> bool:
        """True where a server without TLS is refused."""
        return self.proof not in {None, Proof.NOTHING}


def postgres_login(grant: Grant) -> PostgresLogin:
    """Return the login of a grant that has its secrets."""
    config: DatabaseConfig = build(DatabaseConfig, grant.config, "config")
    return PostgresLogin(
        host=config.host,
        port=config.port,
        user=config.user,
        dbname=config.dbname,
        password=grant.secrets.get("password", ""),
        sslmode=config.sslmode,
        ca=config.ca,
        connect_timeout_s=config.connect_timeout_s,
    )


def passed_on(login: PostgresLogin, startup: StartupPacket) -> Parameters:
    """Return the parameters for the server: the login's own, and those of the run that may be passed on."""
    own = {b"user": login.user.encode(), b"database": login.dbname.encode()}
    given = dict(own)
    for name, value in startup.parameters:
        if name in own:
            _refuse_other(login, name, value, own[name])
        elif name.lower() in PASSED_ON:
            given[name] = value
        elif not name.startswith(_OPTION):
            raise _not_passed_on(name)
    return tuple(given.items())


def unknown_options(startup: StartupPacket) -> tuple[bytes, ...]:
    """Return the options of the protocol that the run asks for: none is passed on."""
    return tuple(name for name, _ in startup.parameters if name.startswith(_OPTION))


def _refuse_other(login: PostgresLogin, name: bytes, value: bytes, allowed: bytes) -> None:
    if value != allowed:
        raise PostgresRefusal.because(
            ConnectionReason.NOT_ALLOWED,
            "28000",
            f"{name.decode()} {value.decode(errors='replace')[:63]!r} is not this resource's",
            f"connect as user {login.user!r} to database {login.dbname!r}, without a password",
        )


def _not_passed_on(name: bytes) -> PostgresRefusal:
    shown = name.decode(errors="replace")[:63]
    if name == b"replication":
        way_out = "leave it out: a resource gives sessions for statements only"
    else:
        way_out = f"set it in options, as in '-c {shown}=…', or by SET once connected"
    return PostgresRefusal.because(
        ConnectionReason.NOT_ALLOWED,
        "28000",
        f"the startup parameter {shown!r} is not passed on",
        way_out,
    )
