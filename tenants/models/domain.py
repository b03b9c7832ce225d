"""A host name that stands for a tenant."""

from django_tenants.models import DomainMixin

from tenants.rights import DatabaseRights, HasRights


class Domain(HasRights, DomainMixin):  # type: ignore[misc]  # django-tenants has no annotations
    """Lower case, without a port."""

    database_rights = DatabaseRights(login=("SELECT",))

    def __str__(self) -> str:
        return str(self.domain)
