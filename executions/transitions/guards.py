"""Guards of statements, written from the tables in `executions.states`. Pure."""

from collections.abc import Collection, Mapping

from executions.states import State, sources
from tenants.statement import text_set


def may_become(
    table: Mapping[State, frozenset[State]],
    *targets: State,
    only: Collection[State] | None = None,
    or_is: bool = False,
) -> str:
    """Write what follows `state` in a guard: it may become every target. `or_is`: or is the target already."""
    found = sources(table, *targets, only=only)
    if or_is:
        found += [target.value for target in targets]
    return f"= '{found[0]}'" if len(found) == 1 else f"= ANY({text_set(found)})"


def pair_is_allowed(
    table: Mapping[State, frozenset[State]],
    state: str,
    target: str,
    *,
    targets: Collection[State],
    only: Collection[State],
    or_is: bool = False,
) -> str:
    """Write a guard over two expressions: what is one of `only` may become what is one of `targets`."""
    pairs = [
        f"('{source}', '{reached}')"
        for source in table
        for reached in table
        if source in only
        and reached in targets
        and (reached in table[source] or (or_is and source is reached))
    ]
    return (
        f"({state}, {target}) IN ({', '.join(sorted(pairs))})"  # a set has no order, a text has one
    )
