"""The resource records of runs."""

import django.db.models.deletion
import django.db.models.lookups
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0004_approvals"),
    ]

    operations = [
        migrations.CreateModel(
            name="ResourceRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("epoch", models.IntegerField()),
                ("resource_id", models.TextField()),
                ("name", models.TextField(help_text="Its name in the blueprint.")),
                ("type", models.TextField()),
                ("definition", models.TextField()),
                (
                    "step",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="The step that opened it; empty if the context did.",
                    ),
                ),
                ("opened_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "ended",
                    models.TextField(
                        blank=True, default="", help_text="How it ended; empty while it is open."
                    ),
                ),
                ("error", models.TextField(blank=True, default="", help_text="Secrets masked.")),
                (
                    "execution",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="resource_records",
                        to="executions.execution",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)),
                        fields=["execution"],
                        name="resource_record_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("execution", "resource_id"), name="resource_record_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Func(
                            models.F("ended"),
                            models.Value('{"",disposed,killed,swept,failed}'),
                            arg_joiner=" = ANY (",
                            output_field=models.BooleanField(),
                            template="(%(expressions)s::text[]))",
                        ),
                        name="resource_record_ended_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Func(
                            models.Func(
                                django.db.models.lookups.IsNull(models.F("closed_at"), rhs=True),
                                template="(%(expressions)s)",
                            ),
                            models.Func(
                                models.F("ended"),
                                models.Value("{disposed,killed,swept,failed}"),
                                arg_joiner=" <> ALL (",
                                output_field=models.BooleanField(),
                                template="(%(expressions)s::text[]))",
                            ),
                            arg_joiner=" = ",
                            output_field=models.BooleanField(),
                            template="%(expressions)s",
                        ),
                        name="resource_record_closed_when_ended",
                    ),
                ],
            },
        ),
    ]
