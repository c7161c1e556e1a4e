# Two commands do everything on a fresh machine: `make demo` and `make test`.
ROOT   := .
.DEFAULT_GOAL := help
include tools/lock.mk
DIST   ?= dist
UV     := $(BIN)/uv pip install --quiet --python $(BIN)/python -c $(LOCK)
EXTRAS := test,dev,play,models,local,data,inspect,agents,openenv,mcp,ray,skyrl,tracking
TESTED := 'intercode-gym[$(EXTRAS)]' 'intercode-sql[mysql,duckdb,fast]' 'intercode-sandbox[zstd]'
STAMP  := $(VENV)/.installed
TOOLS  := $(VENV)/.tools
TRAIN  := $(VENV)/.training
NEEDED := packages/sandbox packages/sql packages/intercode
# The plug-in, which the demo does not need.
PLUGIN := packages/lab
NATIVE := packages/sandbox/src/intercode_sandbox/supervisor
SOURCES := $(NATIVE)/build.py $(shell find $(NATIVE) -name '*.[ch]')

# Tests start hundreds of interpreters: without compiled modules, each would compile the package.
unexport PYTHONDONTWRITEBYTECODE

# Two workers for each processor, because tests wait for time limits and other processes.
WORKERS ?= $(shell expr $$(nproc) \* 2)
SUITE  := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
# What needs nothing beyond this package and PyPI.
PORTABLE := not docker and not mysql and not browser and not rootfs and not network and not nl2bash
FAST := $(PORTABLE) and not slow

.PHONY: help demo test check fast quick test-all test-rest test-stress steady training hostile soak docs prose release-check results lint format wheel bench clean lock

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# The installation compiles the supervisor.
$(STAMP): $(LOCK) $(NEEDED:%=%/pyproject.toml) packages/sandbox/hatch_build.py $(SOURCES)
	$(PIP) -c $(LOCK) $(NEEDED:%=-e %)
	@touch $@

$(TOOLS): $(STAMP) $(PLUGIN)/pyproject.toml
	$(UV) $(NEEDED:%=-e %) -e $(PLUGIN) $(TESTED) \
	  || $(PIP) -c $(LOCK) $(NEEDED:%=-e %) -e $(PLUGIN) $(TESTED)  # slower, but where pip has an index of its own
	@touch $@

$(TRAIN): $(TOOLS)
	$(PIP) -c $(LOCK) --no-compile 'intercode-gym[trl]'  # pip may be set up to find a torch without GPU support
	@touch $@

training: $(TRAIN)  ## add TRL and PyTorch (several GB with GPU support), for tests and the example of training

demo: $(STAMP)  ## play the starter tasks with the gold and noop agents (and a model, if one is set)
	$(BIN)/python examples/demo.py

test: $(TOOLS)  ## linter, type checker and the tests of every part; 7 minutes on two cores
	@$(MAKE) --no-print-directory --output-sync=target -j 2 check fast

check: $(TOOLS)  ## linter, spelling and type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

fast: $(TOOLS)
	$(SUITE) -m "$(FAST)" $(PYTEST)

quick: $(TOOLS)  ## the tests that need no sandbox; under a minute
	$(SUITE) -n $$(nproc) -m "$(FAST) and not heavy and not sandbox" $(PYTEST)

test-all: $(TOOLS)  ## every test that this machine can run; PYTEST='packages/sql/tests -x' are arguments of pytest
	$(SUITE) --durations=20 $(PYTEST)

test-rest: $(TOOLS)  ## the tests that `make test` leaves out
	$(SUITE) --durations=20 -m "not ($(FAST))" $(PYTEST)

test-stress: $(TOOLS)  ## sandbox, sessions, environments and attacks beside busy loops, and on a disk that is nearly full
	$(BIN)/python tests/stress.py $(PYTEST)

steady: $(TOOLS)  ## `make test` ten times beside busy loops, while random processes are stopped (ROUNDS=10)
	$(BIN)/python tools/steady.py --rounds $(or $(ROUNDS),10) -- $(MAKE) --no-print-directory fast

hostile: $(TOOLS)  ## the hostile suite alone, every case with the full time limit of an episode
	INTERCODE_HOSTILE_LONG=1 $(BIN)/python -m pytest -q tests/hostile $(PYTEST)

soak: $(TOOLS) hostile  ## takes hours: the hostile suite, fuzzers, 20,000 episodes beside hostile ones, 100,000 with a plot
	PYTHONPATH=tests $(BIN)/python -m hostile fuzz --seconds 3600 --out runs/fuzz.jsonl
	$(BIN)/python benchmarks/soak_fuzz.py
	$(BIN)/python benchmarks/soak_adversaries.py
	$(BIN)/python benchmarks/soak.py

format: $(TOOLS)  ## apply the linter's fixes and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(TOOLS) prose  ## build the documentation site in build/site and check it (prose, links, two clicks, a telephone)
	$(BIN)/python tools/docs_build.py
	$(BIN)/python tools/docs_check.py

# Rules of Harper that take names, code, tables and variables for faults. codespell checks the spelling.
NOT_FAULTS := SpellCheck SentenceCapitalization UseTitleCase OxfordComma SplitWords MergeWords CompoundNouns \
  OrthographicConsistency MassNouns AnA Spaces SingleBe ItsContraction TheirToTheyre MissingPreposition MissingTo \
  CapitalizePersonalPronouns PronounInflectionBe PronounKnew PhrasalVerbAsCompoundNoun OneOfTheSingular OutOfDate \
  Overall DiscourseMarkers UseEllipsisCharacter ExpandTimeShorthands ExpandMemoryShorthands ExpandControl \
  ExpandStandardInputAndOutput ExpandConfiguration ExpandArgument ExpandMinimum

prose: $(TOOLS)  ## check the grammar of the documentation, and that no sentence has more than 40 words
	$(BIN)/harper lint --quiet --no-color --format compact \
	  $(NOT_FAULTS:%=--ignore %) README.md CONTRIBUTING.md SECURITY.md $(wildcard packages/*/README.md) $(shell find docs -name '*.md')

wheel: $(STAMP)  ## build the wheels into dist/ (DIST=DIRECTORY)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) $(NEEDED:%=./%) ./$(PLUGIN)

release-check: $(TOOLS)  ## build and check the wheels and the sdist, and install them in fresh environments
	$(BIN)/python tools/release_check.py $(RELEASE)

results: $(TOOLS)  ## play the starter suites with agents that need no model, and write benchmarks/results/agents.md
	$(BIN)/python benchmarks/results.py

bench: $(TOOLS)  ## print the benchmark tables
	for b in benchmarks/bench_*.py; do $(BIN)/python $$b || exit 1; done

lock: $(LOCK)  ## pin the newest versions in uv.lock
	$(BIN)/uv lock --upgrade

clean:  ## remove the files that these commands create
	rm -rf $(VENV) $(NATIVE)/bin build runs .pytest_cache .mypy_cache .ruff_cache
