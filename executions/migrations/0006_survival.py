"""The newest placement that a run's events tell of."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0005_resource_records"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="placed",
            field=models.IntegerField(
                db_default=0, default=0, help_text="The newest placement that its events tell of."
            ),
        ),
    ]
