"""Admin pages for resources and secrets of one tenant, linked from the tenant's page."""
