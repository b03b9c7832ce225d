"""resources.addresses: where a definition may point, and that the platform's own servers are never among it."""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django import Settings

from resources import addresses
from resources.addresses import (
    ANY_PORT,
    AddressPolicy,
    AddressRefused,
    HostUnknown,
    check_literal,
    host_and_port,
    policy_from_settings,
    refusal,
    resolve,
)

STRICT = AddressPolicy()
OPEN = AddressPolicy(
    networks=(ip_network("0.0.0.0/0"), ip_network("::/0")),
    own=frozenset({("10.0.0.5", 5432), ("127.0.0.1", 6379), ("2001:db8::5", 5432)}),
    own_names=frozenset({("db.internal", 5432)}),
    machine=frozenset({"192.168.1.7", "fd00::7"}),
)
Answers = Callable[..., None]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Names stand for what the test says; numbers for themselves, without asking."""
    names: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def answer(host: str, port: int, *, flags: int = 0, **rest: Any) -> list[Any]:
        found = names.get(host)
        if found is None or flags & socket.AI_NUMERICHOST:
            return real(host, port, flags=socket.AI_NUMERICHOST, **rest)
        return [entry for one in found for entry in real(one, port, **rest)]

    def set_name(name: str, *found: str) -> None:
        names[name] = list(found)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return set_name


# --- addresses
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254",
        "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "100.64.0.1", "100.100.100.200", "224.0.0.1", "ff02::1",
        "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "192.0.0.192", "168.63.129.16", "fec0::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a00:1::1", "::127.0.0.1", "2001:0:1::1", "2001:db8::1",
    ],
)  # fmt: skip
def test_what_is_not_public_is_refused_unless_allowed(address: str) -> None:
    assert "ISOLANE_RESOURCE_NETWORKS" in refusal(address, 5433, STRICT)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert refusal(address, 443, STRICT) == ""


@pytest.mark.parametrize("address", ["localhost", "", "10.0.0", "0x7f000001", "1.2.3.4/8"])
def test_what_is_no_address_is_refused(address: str) -> None:
    assert refusal(address, 443, OPEN) == "it is not an IP address"


def test_the_operator_allows_networks_by_the_address_that_is_meant() -> None:
    policy = AddressPolicy(networks=(ip_network("10.1.0.0/16"), ip_network("::/0")))
    assert refusal("10.1.2.3", 5432, policy) == ""
    assert refusal("::ffff:10.1.2.3", 5432, policy) == ""
    assert refusal("fd00::1", 5432, policy) == ""
    assert refusal("10.2.0.1", 5432, policy)
    assert refusal("::ffff:10.2.0.1", 5432, policy)


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("10.0.0.5", 5432), ("::ffff:10.0.0.5", 5432), ("64:ff9b::a00:5", 5432), ("2002:a00:5::", 5432),
        ("2001:db8::5", 5432), ("2001:0db8:0::5", 5432), ("10.0.0.5", ANY_PORT),
        ("127.0.0.1", 6379), ("127.1.2.3", 6379), ("::1", 6379), ("0.0.0.0", 6379), ("::", 6379), ("192.168.1.7", 6379),
        ("fd00::7", 6379), ("::ffff:127.0.0.1", 6379), ("fd00::7", ANY_PORT),
    ],
)  # fmt: skip
def test_the_platform_s_own_servers_are_refused_whatever_is_allowed(
    address: str, port: int
) -> None:
    assert "platform's own" in refusal(address, port, OPEN)


@pytest.mark.parametrize(
    ("address", "port"),
    [("10.0.0.5", 5433), ("10.0.0.6", 5432), ("127.0.0.1", 5432), ("192.168.1.8", 6379)],
)
def test_their_neighbours_are_not(address: str, port: int) -> None:
    assert refusal(address, port, OPEN) == ""


def test_a_server_of_the_platform_at_this_machine_s_address_is_local_everywhere() -> None:
    policy = AddressPolicy(
        networks=(ip_network("127.0.0.0/8"),),
        own=frozenset({("192.168.1.7", 5432)}),
        machine=frozenset({"192.168.1.7"}),
    )
    assert "platform's own" in refusal("127.0.0.1", 5432, policy)
    assert refusal("127.0.0.1", 5433, policy) == ""


@pytest.mark.parametrize("address", ["8.8.8.8", "::ffff:8.8.8.8", "2606:4700::1111"])
def test_this_machine_s_public_addresses_are_refused_unless_allowed(address: str) -> None:
    machine = frozenset({"8.8.8.8", "2606:4700::1111"})
    assert "an address of this machine" in refusal(address, 5433, AddressPolicy(machine=machine))
    networks = (ip_network("8.8.8.8/32"), ip_network("2606:4700::/32"))
    assert refusal(address, 5433, AddressPolicy(machine=machine, networks=networks)) == ""
    assert refusal("8.8.4.4", 5433, AddressPolicy(machine=machine)) == ""


# --- where a definition points
@pytest.mark.parametrize(
    ("resource_type", "config", "place"),
    [
        ("database", {"host": "db.test"}, ("db.test", 5432)),
        ("database", {"host": "2001:db8::1", "port": 6000}, ("2001:db8::1", 6000)),
        ("http_api", {"base_url": "https://api.test/v1"}, ("api.test", 443)),
        ("http_api", {"base_url": "http://api.test:8080"}, ("api.test", 8080)),
        ("http_api", {"base_url": "https://[2001:db8::1]:99/x"}, ("2001:db8::1", 99)),
        ("model", {"provider": "openai", "base_url": "https://m.test"}, ("m.test", 443)),
        ("model", {"provider": "echo", "base_url": ""}, None),
        ("cache", {"host": "evil.test"}, None),
        ("ldap", {"host": "ldap.test", "port": 636}, ("ldap.test", 636)),
        ("ldap", {"host": "ldap.test"}, ("ldap.test", ANY_PORT)),
        ("queue", {"region": "x"}, None),
    ],
)
def test_host_and_port(
    resource_type: str, config: Mapping[str, Any], place: tuple[str, int] | None
) -> None:
    assert host_and_port(resource_type, config) == place


@pytest.mark.parametrize(
    "host",
    [
        "", "/run/postgresql", "a,b", "a b", "a\n", "\0", "@socket", "a/b", "a?b", "a@b", "[::1]", "-a", "a..b/",
        "dbé.test", "a%41", "fe80::1%eth0", "'; DROP", "x" * 300, None, 7, ["a"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("resource_type", ["database", "ldap"])
def test_what_is_not_one_host_is_refused(resource_type: str, host: object) -> None:
    with pytest.raises(AddressRefused, match="one host name or IP address") as caught:
        host_and_port(resource_type, {"host": host, "port": 5432})
    assert caught.value.field == "host"
    assert caught.value.code == "address_refused"


@pytest.mark.parametrize(
    "url",
    [
        "", "api.test", "ftp://api.test", "file:///etc/passwd", "unix:///x", "https://", "https:///x", "http://a b/",
        "http://a\tb/", "http://evil\\@good/", "http://[::1", "http://a:99999", "http://a:x", "http://a:0", "//a", None,
    ],
)  # fmt: skip
def test_what_is_not_the_url_of_a_web_server_is_refused(url: object) -> None:
    with pytest.raises(AddressRefused):
        host_and_port("http_api", {"base_url": url})


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(AddressRefused, match="put them into a secret") as caught:
        host_and_port("http_api", {"base_url": "https://user:precious@api.test"})
    assert "precious" not in str(caught.value)


@pytest.mark.parametrize("port", [0, -1, 65536, "5432", True, None, 1.5])
def test_what_is_no_port_is_refused(port: object) -> None:
    with pytest.raises(AddressRefused, match="1 to 65535"):
        host_and_port("database", {"host": "db.test", "port": port})


# --- what can be seen without DNS
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "::1", "localhost", "LOCALHOST.", "a.localhost",
        "10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1",
    ],
)  # fmt: skip
def test_a_literal_is_refused_at_once(host: str) -> None:
    with pytest.raises(AddressRefused, match="is not allowed for a resource"):
        check_literal("database", {"host": host}, STRICT)


@pytest.mark.parametrize("host", ["db.internal", "DB.Internal.", "10.0.0.5"])
def test_the_platform_s_names_are_refused_at_once(host: str) -> None:
    with pytest.raises(AddressRefused, match="is not allowed"):
        check_literal("database", {"host": host}, OPEN)
    check_literal("database", {"host": host, "port": 5433}, OPEN)


def test_names_are_left_to_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = socket.getaddrinfo

    def watch(host: str, port: int, *, flags: int = 0, **rest: Any) -> list[Any]:
        asked.append(flags)
        return real(host, port, flags=flags, **rest)

    monkeypatch.setattr(socket, "getaddrinfo", watch)
    check_literal("http_api", {"base_url": "https://api.example.com"}, STRICT)
    check_literal("cache", {}, STRICT)
    assert asked == [socket.AI_NUMERICHOST]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("db.internal", "the platform's own"), ("10.0.0.5", "the platform's own"), ("127.0.0.1", "a loopback address"),
        ("10.9.9.9", "a private or reserved address"), ("169.254.169.254", "a link-local address"),
        ("192.168.1.7", "a private or reserved address"),
    ],
)  # fmt: skip
def test_one_sentence_for_all_that_is_refused_and_the_reason_in_the_log(
    host: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "resources.addresses")
    with pytest.raises(AddressRefused) as caught:
        check_literal("database", {"host": host}, replace(OPEN, networks=()))
    assert caught.value.detail.replace(host, "HOST") == (
        "host 'HOST:5432' is not allowed for a resource: it must be a server of yours, at a public address or in a"
        " network that the operator has opened by ISOLANE_RESOURCE_NETWORKS."
    )
    assert reason in caplog.text


# --- what a name stands for
def test_a_name_is_resolved_to_one_address(dns: Answers) -> None:
    dns("db.test", "8.8.8.8", "8.8.4.4")
    assert resolve("db.test", 5432, STRICT) == "8.8.8.8"


def test_a_name_is_refused_for_any_of_its_addresses_without_telling_which(dns: Answers) -> None:
    dns("db.test", "8.8.8.8", "10.11.12.13")
    with pytest.raises(AddressRefused, match=r"db\.test:5432") as caught:
        resolve("db.test", 5432, STRICT)
    assert "10.11.12.13" not in str(caught.value)


def test_a_customer_s_name_for_the_platform_s_server_is_refused(dns: Answers) -> None:
    dns("innocent.test", "10.0.0.5")
    with pytest.raises(AddressRefused, match="is not allowed") as caught:
        resolve("innocent.test", 5432, OPEN)
    assert "10.0.0.5" not in str(caught.value)
    assert "db.internal" not in str(caught.value)


def test_the_platform_s_name_is_refused_whatever_it_stands_for(dns: Answers) -> None:
    dns("db.internal", "8.8.8.8")
    with pytest.raises(AddressRefused, match="is not allowed"):
        resolve("db.internal", 5432, OPEN)


def test_odd_notations_are_what_they_stand_for() -> None:
    with pytest.raises(AddressRefused, match="is not allowed"):
        resolve("127.1", 5432, STRICT)


def test_a_name_without_an_address_may_have_one_later(dns: Answers) -> None:
    with pytest.raises(HostUnknown, match=r"nowhere\.test") as caught:
        resolve("nowhere.test", 5432, STRICT)
    assert caught.value.retryable


# --- the platform's own, by its settings
@pytest.fixture
def platform(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A platform in production; what is known of its names is as fresh as the test says."""
    settings.REDIS_URL = "redis://broker.internal:6379/0"
    settings.CACHE_URL = "redis://:x@cache.internal:6380/0"
    settings.RESOURCE_NETWORKS = ("10.0.0.0/8", "127.0.0.0/8")
    # Django keeps the connections that it has; nothing is asked of them here.
    monkeypatch.setitem(settings.DATABASES, "default", {"HOST": "db.internal", "PORT": "5432"})
    monkeypatch.setitem(settings.DATABASES, "owner", {"HOST": "", "PORT": ""})
    addresses._seen.cache_clear()
    return settings


def test_the_policy_knows_the_servers_of_the_settings(platform: Settings, dns: Answers) -> None:
    dns("broker.internal", "10.0.0.1")
    dns("cache.internal", "10.0.0.2")
    dns("db.internal", "10.0.0.3", "10.0.0.4")
    policy = policy_from_settings()
    for address, port in (("10.0.0.1", 6379), ("10.0.0.2", 6380), ("10.0.0.3", 5432),
                          ("10.0.0.4", 5432), ("127.0.0.1", 5432), ("0.0.0.0", 5432)):  # fmt: skip
        assert "platform's own" in refusal(address, port, policy)
    assert refusal("10.0.0.1", 5432, policy) == ""
    assert refusal("127.0.0.1", 5433, policy) == ""
    assert refusal("192.168.0.1", 5433, policy)


def test_web_and_flower_are_the_platform_s_own(platform: Settings, dns: Answers) -> None:
    for name in ("broker.internal", "cache.internal", "db.internal"):
        dns(name, "10.0.0.1")
    platform.OWN_ADDRESSES = (("127.0.0.1", 8000), ("flower.internal", 5555))
    platform.OWN_DOMAIN = "Isolane.example.com"
    dns("flower.internal", "10.0.0.7")
    policy = policy_from_settings()
    for address, port in (("127.0.0.1", 8000), ("::1", 8000), ("10.0.0.7", 5555)):
        assert "platform's own" in refusal(address, port, policy)
    for url in ("https://isolane.example.com", "http://ACME.isolane.example.com."):
        with pytest.raises(AddressRefused):
            check_literal("http_api", {"base_url": url}, policy)
    for url in ("https://isolane.example.com:8443", "https://notisolane.example.com"):
        check_literal("http_api", {"base_url": url}, policy)


def test_names_that_change_are_asked_again(
    platform: Settings, dns: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for name in ("broker.internal", "cache.internal", "db.internal"):
        dns(name, "10.0.0.1")
    assert ("10.0.0.1", 5432) in policy_from_settings().own
    dns("db.internal", "10.0.0.9")
    assert ("10.0.0.9", 5432) not in policy_from_settings().own
    now += 30
    assert ("10.0.0.9", 5432) in policy_from_settings().own


def test_nothing_is_allowed_while_the_platform_s_own_names_are_unknown(
    platform: Settings, dns: Answers
) -> None:
    with pytest.raises(HostUnknown, match="try again") as caught:
        policy_from_settings()
    assert "internal" not in str(caught.value)
