"""A blueprint's text, YAML or JSON, read into a checked document. Pure."""

import json
from typing import Any

import yaml

from executions.blueprint.document import check
from executions.blueprint.errors import InvalidBlueprint, shown
from isolane.protocol import ProtocolError, dump

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_DOCUMENT_DEPTH = 50  # PyYAML's time grows with the square of the depth
MAX_NUMBER_LENGTH = 400  # characters; Python refuses very long ones, and base 60 takes long


class _Loader(yaml.SafeLoader):
    """Refuses what YAML takes silently: a key twice in one mapping, and numbers without end."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's own signature
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | None):
                raise _refusal("a key that is neither text nor number", key_node)
            # In JSON all keys are text, so 1 and "1" are the same.
            name = json.dumps({key: None})
            if name in seen:
                raise _refusal("a key that its mapping already has", key_node)
            seen.add(name)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        _refuse_long(node)
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        _refuse_long(node)
        return super().construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def parse(text: str) -> dict[str, Any]:
    """Read YAML (or JSON, which is YAML) into a checked document."""
    if len(text.encode(errors="replace")) > MAX_DOCUMENT_BYTES:
        raise InvalidBlueprint(f"The document is larger than {MAX_DOCUMENT_BYTES // 1024} KiB.")
    try:
        _refuse_bombs(text)
        document = _as_json(yaml.load(text, _Loader))  # noqa: S506 - a safe loader, only stricter
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = shown(str(error.problem))
        raise InvalidBlueprint(f"Line {line} is not YAML: {problem}.") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        # PyYAML lets Python's own errors through where a tag does not fit its value.
        raise InvalidBlueprint(
            "The document is not YAML, or a value does not fit its tag."
        ) from None
    return check(document)


def _refuse_bombs(text: str) -> None:
    """Small texts that would take much time or memory: aliases multiply values, depth the work."""
    depth = 0
    for event in yaml.parse(text):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidBlueprint("The document uses YAML aliases (*name); write the value out.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DOCUMENT_DEPTH:
            raise InvalidBlueprint(
                f"The document is nested deeper than {MAX_DOCUMENT_DEPTH} levels."
            )


def _refuse_long(node: yaml.ScalarNode) -> None:
    if len(node.value) > MAX_NUMBER_LENGTH:
        raise _refusal(f"a number of more than {MAX_NUMBER_LENGTH} characters", node)


def _refusal(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _as_json(value: Any) -> Any:
    """YAML knows dates, infinite numbers and keys that are no text; what is stored is JSON."""
    try:
        return json.loads(dump(value))
    except ProtocolError as error:
        raise InvalidBlueprint(
            f"The document holds what JSON does not ({shown(str(error))})."
        ) from None
