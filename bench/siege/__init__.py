"""The siege: every attack on the platform's front door at once, while another tenant works. `python -m bench.siege`."""
