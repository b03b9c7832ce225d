"""The processor time and RAM that a run has used."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0009_resource_error_codes"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="cpu_seconds",
            field=models.FloatField(
                db_default=0,
                default=0,
                help_text="Processor time that its runtimes have used, of all placements that ended in order.",
            ),
        ),
        migrations.AddField(
            model_name="execution",
            name="peak_ram_mb",
            field=models.FloatField(
                db_default=0,
                default=0,
                help_text="Most RAM in MiB that one of these runtimes has used at a time.",
            ),
        ),
    ]
