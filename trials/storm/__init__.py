"""The storm: many runs that misbehave in every way, then a look at what is left anywhere. `python -m trials.storm`."""
