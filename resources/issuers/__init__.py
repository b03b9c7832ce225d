"""Issuers: make and revoke the credentials of one placement at a remote server; in the worker, never in a runtime."""
