"""The gate: throughput, latency, and the price of a route, beside direct connections. `python -m bench.gate`."""
