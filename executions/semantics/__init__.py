"""What a run means: memory, attempts, decisions, costs, seeds. No I/O; workers and `isolane run --local` share it."""
