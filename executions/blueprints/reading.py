"""Reading a blueprint's text, YAML or JSON, into a checked document. Pure."""

import json
import math
from typing import Any

import yaml

from executions.blueprints.errors import BlueprintTooExpensive, InvalidBlueprint, shown
from executions.blueprints.numbers import know_exponents
from executions.blueprints.schema.document import check
from executions.blueprints.source import Source, lines_of
from executions.blueprints.work import TooMuchWork, Work, check_work
from isolane.protocol import ProtocolError, dump

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_DOCUMENT_DEPTH = 50
MAX_DOCUMENT_NODES = (
    40_000  # keys, values, lists and mappings; a thousand steps with all fields stay below
)
_TEXT = "tag:yaml.org,2002:str"
_EVENT = 100  # units of work for one event of the parser
_NODE = 500  # likewise for one value
MAX_NUMBER_LENGTH = 400  # characters; Python refuses very long ones, and base 60 is slow

# With libyaml, which PyYAML's wheels contain, reading takes a tenth of the time.
_Parser: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class _Loader(_Parser):  # type: ignore[misc]  # depends on the machine
    """Refuses what YAML silently accepts."""

    def __init__(self, text: str, work: Work) -> None:
        super().__init__(text)
        self._work = work

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's own signature
        self._work.spend(_NODE)
        return super().construct_object(node, deep)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's own signature
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self._key(key_node)
            if not isinstance(key, str | int | float | None):
                raise _refusal("a key that is neither text nor number", key_node)
            # In JSON all keys are text, so 1 and "1" are the same.
            name = key if isinstance(key, str) else json.dumps(key)
            if name in seen:
                raise _refusal("a key that its mapping already has", key_node)
            seen.add(name)
        return super().construct_mapping(node, deep)

    def _key(self, node: yaml.Node) -> Any:
        """Return a key; nearly all are plain text, which need not be built twice."""
        return node.value if node.tag == _TEXT else self.construct_object(node, deep=True)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> Any:
        _refuse_long(node)
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> Any:
        _refuse_long(node)
        number = super().construct_yaml_float(node)
        if not math.isfinite(number):
            raise _refusal("a number without end, which JSON does not have", node)
        return number

    def refuse_date(self, node: yaml.ScalarNode) -> Any:
        """Refuse a date, which is usually meant as text."""
        raise _refusal("a date, which JSON does not have; put it in quotes", node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.refuse_date)
know_exponents(_Loader)


def parse(text: str) -> dict[str, Any]:
    """Read YAML (or JSON, which is YAML) into a checked document."""
    return read(text).document


def read(text: str) -> Source:
    """Read a text into a checked document that knows its lines."""
    if len(text.encode(errors="replace")) > MAX_DOCUMENT_BYTES:
        raise InvalidBlueprint(f"The document is larger than {MAX_DOCUMENT_BYTES // 1024} KiB.")
    work = check_work()
    try:
        _refuse_bombs(text, work)
        document, node = _load(text, work)
    except TooMuchWork:
        raise BlueprintTooExpensive(
            "Reading the document takes too much work; make several smaller blueprints of it."
        ) from None
    except yaml.MarkedYAMLError as error:
        # libyaml reports a missing end on the line after the last.
        line = min(_line(error.problem_mark), len(text.splitlines()))
        problem = shown(str(error.problem))
        raise InvalidBlueprint(f"Line {line} is not YAML: {problem}.", line=line) from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        # PyYAML lets Python's own errors through where a tag does not fit its value.
        raise InvalidBlueprint(
            "The document is not YAML, or a value does not fit its tag."
        ) from None
    source = Source(document=_as_json(document), lines=lines_of(node))
    with source.located():
        check(source.document)
    return source


def _refuse_bombs(text: str, work: Work) -> None:
    """Refuse a small text that would take much time or memory, before anything is built from it.

    Aliases multiply values, depth multiplies work, and a list of short values takes a hundred times its text.
    """
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_Parser):
        work.spend(_EVENT)
        if isinstance(event, yaml.AliasEvent):
            raise _not_taken(event, "uses YAML aliases (*name); write the value out")
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DOCUMENT_DEPTH:
            raise _not_taken(event, f"is nested deeper than {MAX_DOCUMENT_DEPTH} levels")
        if nodes > MAX_DOCUMENT_NODES:
            raise _not_taken(event, f"has more than {MAX_DOCUMENT_NODES} keys and values")


def _load(text: str, work: Work) -> tuple[Any, yaml.Node | None]:
    loader = _Loader(text, work)
    try:
        node = loader.get_single_node()
        return (loader.construct_document(node) if node else None), node
    finally:
        loader.dispose()


def _not_taken(event: yaml.Event, reason: str) -> InvalidBlueprint:
    line = _line(event.start_mark)
    return InvalidBlueprint(f"line {line}: the document {reason}.", line=line)


def _line(mark: Any) -> int:
    return mark.line + 1 if mark else 1


def _refuse_long(node: yaml.ScalarNode) -> None:
    if len(node.value) > MAX_NUMBER_LENGTH:
        raise _refusal(f"a number of more than {MAX_NUMBER_LENGTH} characters", node)


def _refusal(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _as_json(value: Any) -> Any:
    """Convert to JSON, which is stored: YAML also has dates, infinite numbers and keys that are not text."""
    try:
        return json.loads(dump(value))
    except ProtocolError as error:
        raise InvalidBlueprint(
            f"The document cannot be written as JSON ({shown(str(error))})."
        ) from None
