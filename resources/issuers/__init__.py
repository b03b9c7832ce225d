"""What makes, and takes away again, credentials of one placement at a far side; in the worker, never in a runtime."""
