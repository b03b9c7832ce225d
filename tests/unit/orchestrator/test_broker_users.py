"""orchestrator.broker_users: the file for production has the rules that the embedded stack and the tests use."""

import re
from pathlib import Path

from orchestrator.broker_users import ADMINISTRATOR, RULES, template

FILE = Path(__file__).parents[3] / "deploy" / "redis-users.acl"


def test_the_file_is_what_the_module_prints() -> None:
    assert FILE.read_text() == template()


def test_only_the_administrator_may_do_everything() -> None:
    broad = re.compile(r"\+@|[~&]\* |allkeys|allchannels|allcommands")
    assert [user for user, rules in RULES.items() if broad.search(rules)] == [ADMINISTRATOR]
