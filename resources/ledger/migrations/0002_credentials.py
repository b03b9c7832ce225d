"""The ledger's rows are issued credentials, found by their name at the remote server."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0001_initial"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="issued", name="issued_once"),
        migrations.RenameModel(old_name="Issued", new_name="IssuedCredential"),
        migrations.RenameField(
            model_name="issuedcredential", old_name="far_id", new_name="remote_id"
        ),
        migrations.AddConstraint(
            model_name="issuedcredential",
            constraint=models.UniqueConstraint(
                fields=("execution_id", "epoch", "kind", "remote_id"), name="issued_once"
            ),
        ),
        migrations.AlterField(
            model_name="issuedcredential",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="issued_credentials",
                to="tenants.tenant",
            ),
        ),
        migrations.AlterField(
            model_name="issuedcredential",
            name="kind",
            field=models.TextField(help_text="Such as database.role or cache.user."),
        ),
        migrations.AlterField(
            model_name="issuedcredential",
            name="remote_id",
            field=models.TextField(help_text="Its name at the remote server."),
        ),
        migrations.AlterField(
            model_name="issuedcredential",
            name="data",
            field=models.BinaryField(
                help_text="The login and names needed to revoke it, encrypted."
            ),
        ),
        migrations.AlterField(
            model_name="issuedcredential",
            name="sweep_at",
            field=models.DateTimeField(help_text="The sweeper skips it until then."),
        ),
        migrations.AlterField(
            model_name="issuedcredential",
            name="sweeps",
            field=models.PositiveIntegerField(default=0, help_text="Failed attempts to revoke it."),
        ),
        migrations.AlterField(
            model_name="issuedcredential",
            name="swept",
            field=models.BooleanField(
                default=False, help_text="Revoked by the sweeper, which revokes it once more later."
            ),
        ),
    ]
