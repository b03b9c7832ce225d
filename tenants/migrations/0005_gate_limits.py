"""Limits of what a run of a tenant may do through the gate; null is the platform's default."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0004_run_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="quota",
            name="connections",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Connections of a run through the gate, open at the same time. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="idle_seconds",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Seconds without a byte after which a connection through the gate is closed."
                " Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="network_mb",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Data that a run sends and receives through the gate, in MiB. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("connections__gte", 1), ("connections__lte", 4096)),
                name="quota_connections_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("network_mb__gte", 1), ("network_mb__lte", 1048576)),
                name="quota_network_mb_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("idle_seconds__gte", 1), ("idle_seconds__lte", 86400)),
                name="quota_idle_seconds_in_range",
            ),
        ),
    ]
