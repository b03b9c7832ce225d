"""Questions of runs to people, and their answers."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0003_cheaper_checks"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="question",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Question to a person, open until `wake_at`.",
            ),
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.IntegerField()),
                ("step", models.CharField(max_length=200)),
                ("prompt", models.TextField(help_text="Sensitive values masked.")),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("open", "Open"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("expired", "Expired"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="open",
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "answered_at",
                    models.DateTimeField(
                        help_text="Time of the answer, the expiry or the withdrawal.", null=True
                    ),
                ),
                ("answered_by", models.CharField(blank=True, default="", max_length=200)),
                (
                    "comment",
                    models.TextField(blank=True, default="", help_text="Sensitive values masked."),
                ),
                (
                    "execution",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="approvals",
                        to="executions.execution",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["-asked_at", "id"], name="approval_newest")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("execution", "number"), name="approval_number_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Func(
                            models.F("state"),
                            models.Value("{open,approved,rejected,expired,withdrawn}"),
                            arg_joiner=" = ANY (",
                            output_field=models.BooleanField(),
                            template="(%(expressions)s::text[]))",
                        ),
                        name="approval_state_known",
                    ),
                ],
            },
        ),
    ]
