"""The siege trial: all attacks on the front door at once, while another tenant works. `python -m trials.siege`."""
