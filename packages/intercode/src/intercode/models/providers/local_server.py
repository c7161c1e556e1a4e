"""The program in which llama.cpp serves a model.

It reads its settings, a line of JSON, prints the address once it serves, and ends with its standard
input, which its owner holds.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any


def main() -> None:
    """Serve until the owner closes the standard input, or ends."""
    owner = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints goes to the log
    settings = json.loads(sys.stdin.readline())
    watch = threading.Thread(target=_end_with_owner, daemon=True)
    watch.start()
    try:
        server = _serve(**settings)
    except RuntimeError as e:
        print(e, file=sys.stderr, flush=True)
        os._exit(1)
    print(server.listening_address, file=owner, flush=True)
    watch.join()


def _end_with_owner() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)


def _serve(file: str, key: str, context: int, parallel: int, threads: int) -> Any:
    from xllamacpp import CommonParams, Server

    parameters = CommonParams()
    parameters.model.path, parameters.api_keys = file, [key]
    parameters.port, parameters.ui = 0, False
    parameters.n_parallel, parameters.n_ctx = parallel, parallel * context
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = 1  # errors alone
    return Server(parameters)


if __name__ == "__main__":
    main()
