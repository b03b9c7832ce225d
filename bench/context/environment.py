"""Additional environment variables of the platform's processes. Pure."""

ADDRESS_FILE = "BENCH_CUSTOMER_FILE"  # holds the customer's address and login


def added(address_file: str) -> dict[str, str]:
    """Return the settings with the level without context, the nodes, and the customer's network."""
    return {
        "DJANGO_SETTINGS_MODULE": "bench.context.settings",
        "ISOLANE_NODE_PACKAGES": "bench.context.nodes",
        "ISOLANE_RESOURCE_NETWORKS": "127.0.0.0/8",
        ADDRESS_FILE: address_file,
    }
