"""Reasons are codes; the newest placement that events name is the announced epoch."""

from django.db import migrations, models

# The sentences of versions before 0.2.0, and the codes that stand for them.
REASONS = {
    "the run is over": "run_ended",
    "waits without a slot": "parked",
    "its runtime ended": "runtime_ended",
    "claimed, but active in no thread": "claim_unattended",
    "its end was not written": "close_unwritten",
    "worker draining": "worker_draining",
    "worker drained": "worker_stopped",
    "worker lost": "worker_lost",
    "its time has come": "wake_time",
}
ISOLATION_REASONS = {
    "the tenant requires %": "tenant_requires",
    "the blueprint asks for %": "blueprint_requests",
    "the tenant is not trusted%": "tenant_untrusted",
}


def values(codes: dict[str, str]) -> str:
    """Return the rows of a VALUES list; all of them are constants of this file."""
    return ", ".join(f"('{sentence}', '{code}')" for sentence, code in codes.items())


EVENTS = f"""
UPDATE executions_executionevent e SET data = jsonb_set(e.data, '{{reason}}', to_jsonb(known.code))
FROM (VALUES {values(REASONS)}) AS known(sentence, code)
WHERE e.data ->> 'reason' = known.sentence"""  # noqa: S608 - all constants
RUNS = f"""
UPDATE executions_execution e SET isolation_reason = known.code
FROM (VALUES {values(ISOLATION_REASONS)}) AS known(sentence, code)
WHERE e.isolation_reason LIKE known.sentence"""  # noqa: S608 - all constants

# PostgreSQL 18 names the constraint of a column that is not null after the column.
NOT_NULL = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'executions_execution'::regclass AND conname = 'executions_execution_placed_not_null') THEN
        ALTER TABLE executions_execution RENAME CONSTRAINT executions_execution_placed_not_null TO executions_execution_announced_epoch_not_null;
    END IF;
END $$"""


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0007_keys_of_blueprints"),
    ]

    operations = [
        migrations.RenameField(
            model_name="execution", old_name="placed", new_name="announced_epoch"
        ),
        migrations.RunSQL(NOT_NULL, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="execution",
            name="announced_epoch",
            field=models.IntegerField(
                db_default=0, default=0, help_text="The newest placement that its events name."
            ),
        ),
        migrations.RunSQL(EVENTS, migrations.RunSQL.noop),
        migrations.RunSQL(RUNS, migrations.RunSQL.noop),
    ]
