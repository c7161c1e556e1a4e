"""A program that serves a model by llama.cpp until its standard input ends: its arguments are the
file of the model and a port. It prints a line once it answers."""

import sys

from xllamacpp import CommonParams, Server

parameters = CommonParams()
parameters.model.path, parameters.port = sys.argv[1], int(sys.argv[2])
parameters.n_ctx, parameters.n_parallel, parameters.warmup = 1024, 1, False
parameters.cpuparams.n_threads = 1
server = Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
