"""New tenants require the level process; rows that exist keep what they require."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_gate_limits"),
    ]

    operations = [
        migrations.AlterField(
            model_name="tenant",
            name="required_isolation",
            field=models.CharField(
                choices=[
                    ("shared", "Shared"),
                    ("process", "Process"),
                    ("docker", "Docker"),
                    ("kubernetes", "Kubernetes"),
                ],
                default="process",
                help_text="The weakest isolation that its runs may have; shared counts for trusted tenants only.",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="tenant",
            name="trusted",
            field=models.BooleanField(
                default=False,
                help_text="Its runs may have the level shared, where they are the worker's own user.",
            ),
        ),
    ]
