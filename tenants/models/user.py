"""A person; known to the whole platform, a member of some tenants."""

from django.contrib.auth.models import AbstractUser

from tenants.rights import DatabaseRights, HasRights


class User(HasRights, AbstractUser):
    """Staff and superusers run the platform; memberships give everybody else their rights."""

    database_rights = DatabaseRights(login=("SELECT", "UPDATE (last_login, password)"))
