"""Fault trials: chaos, storm and siege. Each is a program of its own, see docs/trials.md."""
