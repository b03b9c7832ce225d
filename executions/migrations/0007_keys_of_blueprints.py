"""An idempotency key counts for one blueprint: a caller with limited reach neither sees nor takes keys of others."""

from django.db import migrations, models

# Runs that exist keep their keys, each for the blueprint that it was submitted for.
KEEP_KEYS = """
UPDATE executions_execution e SET key_blueprint = v.blueprint_id
FROM executions_blueprintversion v WHERE v.id = e.blueprint_version_id AND e.idempotency_key <> ''"""


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0006_survival"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="key_blueprint",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="The blueprint in which its key is unique, if it has one.",
            ),
        ),
        migrations.RunSQL(KEEP_KEYS, migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name="execution",
            name="execution_key_once",
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.UniqueConstraint(
                condition=models.Q(("idempotency_key", ""), _negated=True),
                fields=("key_blueprint", "idempotency_key"),
                name="execution_key_once",
            ),
        ),
    ]
