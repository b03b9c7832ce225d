"""isolane.tags: the mark that remote servers see."""

from uuid import UUID

from isolane.tags import TAG_MAX, tag

EXECUTION = str(UUID(int=7))


def test_it_names_execution_placement_and_tenant() -> None:
    assert tag(tenant_id="acme", execution_id=EXECUTION, epoch=2) == f"exec_{EXECUTION}/2/acme"


def test_a_long_tenant_is_cut_and_the_execution_never() -> None:
    cut = tag(tenant_id="t" * 63, execution_id=EXECUTION, epoch=123456)
    assert len(cut) == TAG_MAX
    assert cut.startswith(f"exec_{EXECUTION}/123456/ttt")
