"""A worker is reachable while messages to its lane arrive."""

from django.db import migrations, models

# PostgreSQL 18 names the constraint of a column that is not null after the column.
NOT_NULL = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'placement_worker'::regclass AND conname = 'placement_worker_hears_not_null') THEN
        ALTER TABLE placement_worker RENAME CONSTRAINT placement_worker_hears_not_null TO placement_worker_reachable_not_null;
    END IF;
END $$"""


class Migration(migrations.Migration):
    dependencies = [
        ("placement", "0005_echo"),
    ]

    operations = [
        migrations.RenameField(model_name="worker", old_name="hears", new_name="reachable"),
        migrations.RunSQL(NOT_NULL, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="worker",
            name="reachable",
            field=models.BooleanField(
                db_default=True, default=True, help_text="Messages sent to its lane arrive."
            ),
        ),
    ]
