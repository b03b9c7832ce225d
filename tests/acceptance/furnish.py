"""`python -m tests.acceptance.furnish NAME …`: makes the schema and a tenant of each name; its keys come as JSON."""

import json
import sys

from orchestrator.cli.support.django import setup_django


def main(names: list[str]) -> None:
    """For a platform that the environment points at."""
    setup_django()
    from tenants.provisioning import migrate
    from tenants.roles import Role
    from tenants.services.api_keys import create_api_key
    from tests.factories import make_tenant

    migrate()
    tenants = [make_tenant(name, trusted=True) for name in names]
    keys = {
        tenant.schema: create_api_key(tenant=tenant, name="own", role=Role.AUTHOR, actor="tests")
        for tenant in tenants
    }
    sys.stdout.write(json.dumps(keys))


if __name__ == "__main__":
    main(sys.argv[1:])
