"""Pages of the platform's admin for what one tenant has defined; reached from the tenant's own page."""
