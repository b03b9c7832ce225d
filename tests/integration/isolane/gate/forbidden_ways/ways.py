"""All ways, by their names."""

from tests.integration.isolane.gate.forbidden_ways.addresses import ADDRESSES
from tests.integration.isolane.gate.forbidden_ways.cache import CACHE
from tests.integration.isolane.gate.forbidden_ways.channel import CHANNEL
from tests.integration.isolane.gate.forbidden_ways.database import DATABASE
from tests.integration.isolane.gate.forbidden_ways.http import HTTP
from tests.integration.isolane.gate.forbidden_ways.names import NAMES
from tests.integration.isolane.gate.forbidden_ways.sockets import SOCKETS
from tests.integration.isolane.gate.forbidden_ways.way import Way

# Need nothing but the names and ports of what is declared.
BARE: dict[str, Way] = ADDRESSES | NAMES | SOCKETS
# Speak with a declared resource, which must be there for them to mean anything.
BROKERED: dict[str, Way] = HTTP | DATABASE | CACHE
# Each in a run of its own: others would disturb it, or it ends the run.
ALONE: dict[str, Way] = CHANNEL
WAYS: dict[str, Way] = BARE | BROKERED | ALONE
