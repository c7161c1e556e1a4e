"""The kinds of worlds."""

from intercode_lab.worlds.kinds.history import lost_work
from intercode_lab.worlds.kinds.ledger import broken_ledger
from intercode_lab.worlds.kinds.restore import restored_store
from intercode_lab.worlds.kinds.till import silent_till

KINDS = (broken_ledger, lost_work, restored_store, silent_till)
