"""Help texts of definitions and secrets; no column changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("resources", "0001_definitions_and_secrets"),
    ]

    operations = [
        migrations.AlterField(
            model_name="resourcedefinition",
            name="config",
            field=models.JSONField(
                default=dict, help_text="The fields that its type's provider reads."
            ),
        ),
        migrations.AlterField(
            model_name="resourcedefinition",
            name="secrets",
            field=models.JSONField(
                default=dict,
                help_text="The provider's name of each secret, with the reference to it.",
            ),
        ),
        migrations.AlterField(
            model_name="secret",
            name="version",
            field=models.IntegerField(default=1, help_text="The number of times that it was set."),
        ),
    ]
