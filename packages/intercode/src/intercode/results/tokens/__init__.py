"""Token traces: what a model was given and wrote, in the engine's own ids, and whether it may be
trained on."""

from intercode.results.tokens.calls import TokenCall
from intercode.results.tokens.faults import KINDS, TokenFault, Vocabulary, find_faults
from intercode.results.tokens.trace import TokenRow, TokenTrace
from intercode.results.tokens.tree import TokenNode

__all__ = [
    "KINDS",
    "TokenCall",
    "TokenFault",
    "TokenNode",
    "TokenRow",
    "TokenTrace",
    "Vocabulary",
    "find_faults",
]
