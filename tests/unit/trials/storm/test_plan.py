"""The seed determines the plan of a storm trial."""

from executions.blueprints.schema.document import check
from trials.storm.plan import RESOURCES, TENANTS, UNTRUSTED, documents, runs


def test_the_same_seed_gives_the_same_plan() -> None:
    assert documents(3) == documents(3) != documents(4)
    names = [document["name"] for document in documents(3)]
    assert runs(3, 50, names) == runs(3, 50, names) != runs(4, 50, names)


def test_blueprints_can_be_published_and_use_what_they_declare() -> None:
    found = documents(5)
    declared = {name for document in found for name in document["resources"]}
    assert declared == set(RESOURCES)
    for document in found:
        check(document)
        assert 1 <= len(document["steps"]) <= 4
        for step in document["steps"]:
            assert set(step["with"]["resources"]) <= set(document["resources"])


def test_untrusted_tenants_take_turns_likewise() -> None:
    assert not set(UNTRUSTED) & set(TENANTS)
    assert [run.tenant for run in runs(5, 2, ["a"], UNTRUSTED)] == list(UNTRUSTED)


def test_tenants_take_turns_and_some_runs_are_cancelled() -> None:
    planned = runs(5, 200, ["a"])
    assert [run.tenant for run in planned[:4]] == [*TENANTS, *TENANTS]
    assert 5 < sum(run.cancel_after is not None for run in planned) < 40
    assert len({run.seed for run in planned}) == len(planned)
