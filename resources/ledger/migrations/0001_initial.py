"""Credentials that exist at remote servers on behalf of placements."""

import django.db.models.deletion
from django.db import migrations, models

import tenants.rights


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenants", "0002_grants_and_budgets"),
    ]

    operations = [
        migrations.CreateModel(
            name="Issued",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("execution_id", models.UUIDField()),
                ("epoch", models.PositiveIntegerField()),
                ("resource_type", models.TextField()),
                ("definition", models.TextField()),
                ("kind", models.TextField()),
                ("far_id", models.TextField()),
                ("data", models.BinaryField(help_text="What it takes to revoke it, encrypted.")),
                ("issued_at", models.DateTimeField()),
                (
                    "sweep_at",
                    models.DateTimeField(help_text="Not looked at by the sweeper before."),
                ),
                (
                    "sweeps",
                    models.PositiveIntegerField(
                        default=0, help_text="How often it could not be revoked."
                    ),
                ),
                (
                    "swept",
                    models.BooleanField(
                        default=False,
                        help_text="Revoked by the sweeper, which looks once more later.",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="issued",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["sweep_at"], name="issued_by_sweep")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("execution_id", "epoch", "kind", "far_id"), name="issued_once"
                    )
                ],
            },
            bases=(tenants.rights.HasRights, models.Model),
        ),
    ]
