"""Limits of what a run of a tenant may use; null is the platform's default."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0003_provisioner"),
    ]

    operations = [
        migrations.AddField(
            model_name="quota",
            name="cpu",
            field=models.FloatField(
                blank=True,
                help_text="Processors that a run may use. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="disk_mb",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Files that a run writes, in MiB. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="max_run_minutes",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Time for which a run may hold a slot. Empty for its blueprint's timeout.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="open_files",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Open files of each process of a run. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="output_kb",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Log lines of one attempt of a step, in KiB. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="processes",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Processes and threads of a run. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="ram_mb",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="RAM of a run in MiB. Empty for the platform's default.",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("cpu__gte", 0.1), ("cpu__lte", 1024)), name="quota_cpu_in_range"
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("ram_mb__gte", 64), ("ram_mb__lte", 1048576)),
                name="quota_ram_mb_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("processes__gte", 8), ("processes__lte", 32768)),
                name="quota_processes_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("disk_mb__gte", 1), ("disk_mb__lte", 1048576)),
                name="quota_disk_mb_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("open_files__gte", 32), ("open_files__lte", 1048576)),
                name="quota_open_files_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("output_kb__gte", 1), ("output_kb__lte", 10240)),
                name="quota_output_kb_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_run_minutes__gte", 1), ("max_run_minutes__lte", 10080)),
                name="quota_max_run_minutes_in_range",
            ),
        ),
    ]
