"""`isolane keys`: encryption keys."""

import click
from cryptography.fernet import Fernet


@click.group()
def keys() -> None:
    """Generate keys for ENCRYPTION_KEYS, a list with the newest first, separated by commas."""


@keys.command()
def generate() -> None:
    """Print a new key. Put it in front of the others: the first key encrypts, all keys decrypt."""
    click.echo(Fernet.generate_key().decode())
