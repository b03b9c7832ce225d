"""Random blueprints, and random scripts for them."""

from typing import Any

from hypothesis import strategies as st

from tests.model.script import MEND, WORK, Act, Answer, Mishap, Moment, Script

KEYS = "abcdef"
# The last two are written in another way by PostgreSQL than by Python.
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [True, False, None, 0, "", "x", [], {}, 1e23, {"later": 1e16, "first": 0.5, "no": None}]
)
CODES = st.sampled_from(
    [
        *(["TRANSIENT_ERROR", "RATE_LIMIT_ERROR", "RATE_LIMIT_ERROR", "TIMEOUT"] * 3),
        *("RESOURCE_ERROR", "POLICY_VIOLATION", "SKILL_NOT_FOUND", "UNKNOWN_ERROR"),
        *("RAM_EXCEEDED", "BUDGET_EXCEEDED", "OUTPUT_TOO_LARGE"),
    ]
)
MODES = st.sampled_from(["abort", "continue", "recover", "continue", "recover", *["retry"] * 5])
GUARANTEES = st.sampled_from(
    [
        *("at_least_once", "exactly_once", "idempotent", "deterministic"),
        *("at_most_once", "at_most_once", "best_effort", "best_effort"),
    ]
)
# More often than the rest, since a run goes on after them.
CUTS = [Mishap.DIES, Mishap.LAPSES, Mishap.DRAINS]
_IN_A_CALL = [*CUTS, Mishap.CANCEL, Mishap.CANCEL_LATE]
_BETWEEN = [mishap for mishap in Mishap if mishap is not Mishap.CANCEL_LATE]
MISHAPS = st.sampled_from(
    [
        *((mishap, Moment.DURING) for mishap in (*_IN_A_CALL, *CUTS)),
        *((mishap, Moment.AFTER) for mishap in (*_BETWEEN, *CUTS)),
        *[(Mishap.CANCEL, Moment.PARKED)] * 2,
    ]
)
ANSWERS = st.sampled_from(Answer)
NAMES = ("ok", "ok", "given.x", "approved", "comment")  # in outputs


def rarely(strategy: st.SearchStrategy[Any], *, one_in: int = 4) -> st.SearchStrategy[Any]:
    """Mostly nothing, which is also what a failing example shrinks to."""
    return st.integers(0, one_in - 1).flatmap(lambda n: strategy if n == one_in - 1 else st.none())


def references(earlier: str) -> st.SearchStrategy[str]:
    """To what is known before a step, or is not there."""
    found = ["${inputs.n}", "${inputs.flag}", "${inputs.none}", "${vars.v}"]
    found += [f"${{steps.{key}.{name}}}" for key in earlier for name in NAMES]
    return st.sampled_from([*found, *found, *found, "${length(inputs.n)}"])


def parameters(earlier: str) -> st.SearchStrategy[dict[str, Any]]:
    """Of a node."""
    texts = ["v is ${vars.v}!", *(f"{key} is ${{steps.{key}.ok}}!" for key in earlier)]
    value = st.one_of(st.integers(0, 3), references(earlier), st.sampled_from(texts))
    return st.dictionaries(st.sampled_from("xy"), value, max_size=2)


@st.composite
def steps(draw: st.DrawFn, position: int) -> dict[str, Any]:
    """One step."""
    earlier = KEYS[:position]
    step: dict[str, Any] = {"key": KEYS[position], "uses": WORK}
    if given := draw(parameters(earlier)):
        step["with"] = given
    if when := draw(rarely(references(earlier))):
        step["when"] = when
    modes = {draw(MODES)}
    if "retry" in modes:
        then = draw(st.sampled_from(["abort", "continue", "continue", "recover"]))
        step |= {
            "on_failure": "retry",
            "retry": {"attempts": draw(st.integers(2, 4)), "then": then},
        }
        modes.add(then)
    else:
        step["on_failure"] = next(iter(modes))
    if "recover" in modes:
        asked = {"why": "${error.code}", "who": "${error.step}", **draw(parameters(earlier))}
        step["recover"] = {"uses": MEND, "with": asked}
    guarantee = draw(rarely(GUARANTEES, one_in=2))
    if guarantee and not ("retry" in modes and guarantee == "at_most_once"):
        step["guarantee"] = guarantee
    return step


@st.composite
def documents(draw: st.DrawFn, *, express: bool) -> dict[str, Any]:
    """One blueprint."""
    count = draw(st.integers(1, len(KEYS)))
    document: dict[str, Any] = {
        "name": "flow",
        "steps": [draw(steps(position)) for position in range(count)],
    }
    if express:
        document["express"] = True
    if outputs := draw(
        rarely(st.dictionaries(st.sampled_from("op"), references(KEYS[:count])), one_in=2)
    ):
        document["outputs"] = outputs
    if budget := draw(rarely(st.sampled_from([0.3, 1, 2.5, 6]))):
        document["budget"] = {"tokens": budget}
    return document


@st.composite
def acts(draw: st.DrawFn) -> list[Act]:
    """One act; of losses also several, up to what a run survives and one more."""
    mishap, moment = draw(rarely(MISHAPS, one_in=3)) or (None, Moment.DURING)
    code = draw(st.none() | CODES)
    answer = None if code else draw(rarely(ANSWERS, one_in=2))
    pauses = rarely(st.sampled_from([0.5, 3600.0]), one_in=6)
    act = Act(
        code=code,
        ok=draw(VALUES),
        variables={} if code else draw(rarely(st.fixed_dictionaries({"v": VALUES}))) or {},
        pause_s=0.0 if code or answer else draw(pauses) or 0.0,
        answer=answer,
        cost=draw(st.sampled_from(["0", "0", "0.1", "1", "2.5"])),
        kills=code == "TIMEOUT" or draw(st.integers(0, 5)) == 5,
        mishap=mishap,
        moment=moment,
    )
    is_loss = mishap in {Mishap.DIES, Mishap.LAPSES} and moment is Moment.DURING
    return [act] * (draw(st.sampled_from([1, 1, 1, 2, 4, 5])) if is_loss else 1)


@st.composite
def scripts(draw: st.DrawFn, document: dict[str, Any]) -> Script:
    """Draw a script for a run of this document."""
    calls = {}
    for step in document["steps"]:
        for node in (WORK, MEND) if "recover" in step else (WORK,):
            drawn = draw(st.lists(acts(), min_size=node == WORK, max_size=4 if node == WORK else 2))
            calls[step["key"], node] = tuple(act for several in drawn for act in several)
    return Script(
        calls=calls,
        start=draw(rarely(st.sampled_from(_BETWEEN), one_in=10)),
        cancelled_in_queue=draw(rarely(st.integers(0, 2), one_in=8)),
        window=draw(st.integers(1, 4)),
        twice=draw(st.booleans()),
        stranger=draw(rarely(st.just(True))) or False,
    )


@st.composite
def plays(draw: st.DrawFn, *, express: bool) -> tuple[dict[str, Any], Script]:
    """A document and what happens to its run."""
    document = draw(documents(express=express))
    return document, draw(scripts(document))


INPUTS = st.fixed_dictionaries({"n": st.integers(0, 3), "flag": VALUES})
SEEDS = st.integers(0, 2**63 - 1)
