"""The shared end of every statement that changes a run: its events are counted, numbered and inserted.

Each such statement names what happens in a CTE `happened(ordinal, kind, step, data)`, before its CTE `run` changes the
run's row: `run` adds EVENT_COUNT to `last_event`, and gives back `id` and `last_event`. Without a row from `run`
nothing has happened. What happens to several steps has one ordinal, and is told in the order of their paths.

The order in which the parts of a statement are written is for the reader: PostgreSQL orders them by their joins alone,
and every part sees the tables as they were before the statement.
"""

EVENT_COUNT = "(SELECT count(*) FROM happened)"

# Numbered from the last one back, since `last_event` is known.
EVENTS = """events AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event + 1 - row_number() OVER (ORDER BY happened.ordinal DESC, happened.step DESC),
           now(), happened.kind, happened.step, happened.data
    FROM run, happened
)"""
