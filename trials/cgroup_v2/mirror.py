"""Finding the Debian mirror that this machine uses."""

from collections.abc import Iterable
from pathlib import Path

APT = Path("/etc/apt")


class NoMirrorError(Exception):
    """No source of apt has the release."""


def mirror_of(release: str, apt: Path = APT) -> str:
    """Return the address of the first source with this release."""
    paths = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    for path in filter(Path.is_file, paths):
        text = path.read_text(encoding="utf-8")
        read = _from_paragraphs if path.suffix == ".sources" else _from_lines
        for address, suites in read(text):
            if release in suites:
                return address
    raise NoMirrorError(f"no source in {apt} has {release}: add one, or use --mirror")


def _from_lines(text: str) -> Iterable[tuple[str, list[str]]]:
    for line in text.splitlines():
        words = [word for word in line.split() if not word.startswith("[") and "=" not in word]
        if words[:1] == ["deb"] and len(words) > 2:
            yield words[1], words[2:3]


def _from_paragraphs(text: str) -> Iterable[tuple[str, list[str]]]:
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        if addresses := fields.get("URIs", "").split():
            yield addresses[0], fields.get("Suites", "").split()
