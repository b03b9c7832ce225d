"""Definitions of resources, and the secrets that open them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ResourceDefinition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=63, unique=True)),
                ("type", models.CharField(help_text="Never changes.", max_length=40)),
                (
                    "config",
                    models.JSONField(default=dict, help_text="As its type's provider reads it."),
                ),
                (
                    "secrets",
                    models.JSONField(
                        default=dict,
                        help_text="From the provider's name of a secret to the reference to it.",
                    ),
                ),
                (
                    "scope",
                    models.TextField(
                        choices=[("step", "Step"), ("execution", "Execution")], default="step"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.CharField(max_length=200)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("updated_by", models.CharField(max_length=200)),
            ],
            options={
                "indexes": [models.Index(fields=["-created_at", "id"], name="definition_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["step", "execution"])),
                        name="definition_scope_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Secret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=63, unique=True)),
                ("sealed", models.BinaryField()),
                ("version", models.IntegerField(default=1, help_text="How often it was set.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("updated_by", models.CharField(max_length=200)),
            ],
            options={
                "indexes": [models.Index(fields=["-created_at", "id"], name="secret_newest")],
            },
        ),
    ]
