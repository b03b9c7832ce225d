"""States of a process, as psutil names them. Pure."""

import psutil

# Ended, but still listed: until its parent has reaped it, and for a moment while it does.
ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
