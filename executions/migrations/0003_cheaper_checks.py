"""Constraints in the form that costs least; numbers that only our own statements count need none."""

import django.db.models.lookups
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0002_semantics"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="execution",
            name="execution_state_known",
        ),
        migrations.RemoveConstraint(
            model_name="execution",
            name="execution_outcome_known",
        ),
        migrations.RemoveConstraint(
            model_name="execution",
            name="execution_finished_when_terminal",
        ),
        migrations.RemoveConstraint(
            model_name="step",
            name="step_state_known",
        ),
        migrations.AlterField(
            model_name="costrecord",
            name="attempt",
            field=models.IntegerField(),
        ),
        migrations.AlterField(
            model_name="execution",
            name="last_event",
            field=models.IntegerField(default=0, help_text="The number of the newest event."),
        ),
        migrations.AlterField(
            model_name="execution",
            name="last_log",
            field=models.IntegerField(
                db_default=0, default=0, help_text="The number of the newest log line."
            ),
        ),
        migrations.AlterField(
            model_name="execution",
            name="losses",
            field=models.IntegerField(
                default=0, help_text="Placements lost in a row without a checkpoint between them."
            ),
        ),
        migrations.AlterField(
            model_name="execution",
            name="version",
            field=models.IntegerField(default=0),
        ),
        migrations.AlterField(
            model_name="executionevent",
            name="sequence",
            field=models.IntegerField(),
        ),
        migrations.AlterField(
            model_name="step",
            name="attempt",
            field=models.IntegerField(default=0),
        ),
        migrations.AlterField(
            model_name="step",
            name="epoch",
            field=models.IntegerField(default=0, help_text="The placement that claimed it last."),
        ),
        migrations.AlterField(
            model_name="step",
            name="position",
            field=models.IntegerField(),
        ),
        migrations.AlterField(
            model_name="steplog",
            name="attempt",
            field=models.IntegerField(),
        ),
        migrations.AlterField(
            model_name="steplog",
            name="number",
            field=models.IntegerField(),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.F("state"),
                    models.Value(
                        "{queued,running,suspended,waiting,succeeded,failed,timed_out,cancelled}"
                    ),
                    arg_joiner=" = ANY (",
                    output_field=models.BooleanField(),
                    template="(%(expressions)s::text[]))",
                ),
                name="execution_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.F("outcome"),
                    models.Value('{"",cancelled,failed,succeeded,timed_out}'),
                    arg_joiner=" = ANY (",
                    output_field=models.BooleanField(),
                    template="(%(expressions)s::text[]))",
                ),
                name="execution_outcome_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Func(
                        django.db.models.lookups.IsNull(models.F("finished_at"), rhs=True),
                        template="(%(expressions)s)",
                    ),
                    models.Func(
                        models.F("state"),
                        models.Value("{cancelled,failed,succeeded,timed_out}"),
                        arg_joiner=" <> ALL (",
                        output_field=models.BooleanField(),
                        template="(%(expressions)s::text[]))",
                    ),
                    arg_joiner=" = ",
                    output_field=models.BooleanField(),
                    template="%(expressions)s",
                ),
                name="execution_finished_when_terminal",
            ),
        ),
        migrations.AddConstraint(
            model_name="step",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.F("state"),
                    models.Value(
                        "{pending,running,retrying,suspended,succeeded,failed,skipped,cancelled}"
                    ),
                    arg_joiner=" = ANY (",
                    output_field=models.BooleanField(),
                    template="(%(expressions)s::text[]))",
                ),
                name="step_state_known",
            ),
        ),
    ]
