"""What the platform's processes find beside what is usual. Pure."""

ADDRESS_FILE = "BENCH_CUSTOMER_FILE"  # holds the customer's address and login


def added(address_file: str) -> dict[str, str]:
    """The switch, the nodes, and leave to reach a customer on this machine."""
    return {
        "DJANGO_SETTINGS_MODULE": "bench.context.settings",
        "ISOLANE_NODE_PACKAGES": "bench.context.nodes",
        "ISOLANE_RESOURCE_NETWORKS": "127.0.0.0/8",
        ADDRESS_FILE: address_file,
    }
