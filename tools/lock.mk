# A virtual environment with uv, and what uv.lock pins as constraints, which pip and uv pip read. ROOT is the checkout.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(abspath $(VENV))/bin
LOCK   := $(abspath $(VENV))/constraints.txt
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(LOCK): $(ROOT)/uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "intercode needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) uv
	$(BIN)/uv export --quiet --frozen --project $(ROOT) --python $(BIN)/python --all-packages --all-extras --no-extra verifiers \
	  --no-emit-workspace --no-hashes --no-annotate --no-header --output-file $@ >/dev/null
	@touch $@
