"""`isolane keys`: keys for the ring."""

import click
from cryptography.fernet import Fernet


@click.group()
def keys() -> None:
    """Encryption keys (ENCRYPTION_KEYS: the newest first, separated by commas)."""


@keys.command()
def generate() -> None:
    """Print a new key. Put it in front of the others; the first encrypts, all decrypt."""
    click.echo(Fernet.generate_key().decode())
