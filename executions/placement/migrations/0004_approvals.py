"""Questions expire."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("placement", "0003_waking"),
    ]

    operations = [
        migrations.AlterField(
            model_name="due",
            name="kind",
            field=models.TextField(choices=[("wake", "Wake"), ("approval", "Approval")]),
        ),
    ]
