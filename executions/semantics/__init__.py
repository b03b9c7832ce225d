"""The meaning of a run: memory, attempts, decisions, costs, seeds. No I/O; workers and `run --local` share it."""
