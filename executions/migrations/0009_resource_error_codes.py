"""Errors of resource records that the platform itself gives are codes; the sentence is made when they are shown."""

from django.db import migrations, models

# The sentences of the version before; the actor stays as the text beside the code.
SENTENCES_TO_CODES = r"""
UPDATE executions_resourcerecord SET error_code = 'not_issued', error = '' WHERE error = 'not issued';
UPDATE executions_resourcerecord SET error_code = 'see_worker_log', error = ''
WHERE error = 'the worker''s log says why';
UPDATE executions_resourcerecord
SET error_code = 'abandoned', error = substring(error FROM '^Given up by (.*); it may still exist\.$')
WHERE ended = 'failed' AND error ~ '^Given up by .*; it may still exist\.$';
"""


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0008_codes"),
    ]

    operations = [
        migrations.AddField(
            model_name="resourcerecord",
            name="error_code",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="The platform's own reason for the error.",
            ),
        ),
        migrations.RunSQL(SENTENCES_TO_CODES, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="resourcerecord",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.F("error_code"),
                    models.Value('{"",not_issued,see_worker_log,abandoned}'),
                    arg_joiner=" = ANY (",
                    output_field=models.BooleanField(),
                    template="(%(expressions)s::text[]))",
                ),
                name="resource_record_error_code_known",
            ),
        ),
        migrations.AlterField(
            model_name="resourcerecord",
            name="error",
            field=models.TextField(
                blank=True,
                default="",
                help_text="The message of a runtime or remote server, secrets masked.",
            ),
        ),
        migrations.AlterField(
            model_name="resourcerecord",
            name="ended",
            field=models.TextField(
                blank=True, default="", help_text="How it ended; empty while it is open."
            ),
        ),
        migrations.AlterField(
            model_name="resourcerecord",
            name="step",
            field=models.TextField(
                blank=True,
                default="",
                help_text="The step that opened it; empty if the context did.",
            ),
        ),
    ]
