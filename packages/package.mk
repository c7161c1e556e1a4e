# The rules of each package's Makefile. `make test` makes a virtual environment with INSTALLED in the versions of
# uv.lock, compiles what SOURCES has, and runs TESTS without those that need MARKS.
ROOT := ../..
.DEFAULT_GOAL := test
.PHONY: test wheel clean
include $(ROOT)/tools/lock.mk
STAMP := $(VENV)/.installed

$(STAMP): $(wildcard ../*/pyproject.toml) $(LOCK) $(SOURCES)
	$(PIP) -c $(LOCK) $(INSTALLED) pytest pytest-xdist hypothesis
	@touch $@

test: $(STAMP)  ## the tests of this package that are fast; PYTEST='-x' are arguments of pytest
	cd $(ROOT) && $(BIN)/python -m pytest -q -n 2 -m "not slow $(MARKS:%=and not %)" $(TESTS) $(PYTEST)

wheel: $(STAMP)  ## build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) dist
