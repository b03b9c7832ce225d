"""The storm trial: many runs that misbehave in every way, then a search for orphans. `python -m trials.storm`."""
