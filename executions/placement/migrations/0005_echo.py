"""The flag of a worker that reaches its lane."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("placement", "0004_approvals"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="hears",
            field=models.BooleanField(
                db_default=True, default=True, help_text="Whether what is sent to its lane arrives."
            ),
        ),
    ]
