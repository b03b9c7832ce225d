"""Fault trials: chaos, storm, flood and siege. Each is a program of its own, see docs/trials.md."""
