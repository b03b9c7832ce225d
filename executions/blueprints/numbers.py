"""JSON's numbers in YAML: YAML 1.1 reads a number with an exponent as text, unless it has a point and a sign. Pure."""

import re

import yaml

_TAG = "tag:yaml.org,2002:float"
_WITH_EXPONENT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][-+]?[0-9]+\Z")


def know_exponents(reader_or_writer: type[yaml.resolver.BaseResolver]) -> None:
    """Let a loader read such numbers, or a dumper quote texts that look like them."""
    reader_or_writer.add_implicit_resolver(_TAG, _WITH_EXPONENT, list("-0123456789"))
