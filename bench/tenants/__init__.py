"""The cost of many tenants: planning, time and backends' RAM of a run. `python -m bench.tenants`."""
