"""A host name of a tenant."""

from django.core.exceptions import ValidationError
from django_tenants.models import DomainMixin

from foundation.errors import InvalidInput
from tenants.names import check_domain
from tenants.rights import DatabaseRights, HasRights


class Domain(HasRights, DomainMixin):  # type: ignore[misc]  # django-tenants has no annotations
    """A host name in lower case, without a port."""

    database_rights = DatabaseRights(login=("SELECT",))

    def clean(self) -> None:
        """Check the host name, for forms."""
        try:
            self.domain: str = check_domain(self.domain)
        except InvalidInput as error:
            raise ValidationError({"domain": error.detail}) from None

    def __str__(self) -> str:
        return str(self.domain)
