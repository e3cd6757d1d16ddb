# Every target sets up what it needs first. Stamp files remember what is done, so that costs nothing twice.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin

PACKAGES := $(VENV)/.stamps/packages
PROJECT := $(VENV)/.stamps/project
JARS := .cache/stamps/jars
POSTGRES := .cache/stamps/postgres
READY := $(PACKAGES) $(PROJECT) $(JARS)
# What tests need besides.
SERVERS := $(POSTGRES)

# Passed on to pytest, for instance: make test ARGS="-k rename -x"
ARGS ?=
# Test processes side by side in check; each with Spark tests has a JVM of its own (about 2 GB). Three are no faster on two cores.
WORKERS ?= 2
# How long fuzz, fuzz-spark, histories and soak go on: a number of random cases or of kills, or of seconds.
CASES ?= 1000
KILLS ?=

export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup demo check lint doctests test test-spark tpch fuzz fuzz-spark histories soak bench fmt lock clean

help: ## Show this list
	@awk 'BEGIN { FS = ":[^#]*## " } /^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) $(SERVERS) ## Make .venv, install the locked packages, fetch the Delta jars, see to PostgreSQL
	@echo "Set-up is complete."

demo: $(READY) ## A department store with two views, kept fresh and verified
	@$(RUN)/viewkeeper demo

check: ## Everything that CI does: format, lint, types, layers, doctests, all tests
	@$(MAKE) --no-print-directory --jobs=2 setup lint doctests
	$(RUN)/python -m pytest tests -m "not tpch" --numprocesses $(WORKERS) $(ARGS)

lint: $(PROJECT) ## Only format, lint, types and layers
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports

doctests: $(PROJECT)
	$(RUN)/python -m pytest --doctest-modules src/viewkeeper

test: $(READY) $(SERVERS) ## The fast tests, without a JVM (ARGS="-k name" narrows them down)
	$(RUN)/python -m pytest tests -m "not spark" $(ARGS)

test-spark: $(READY) ## The tests on real Spark and Delta
	$(RUN)/python -m pytest tests -m "spark and not tpch" $(ARGS)

tpch: $(READY) ## The 22 queries of TPC-H as views, through every kind of change, on Spark
	$(RUN)/python -m pytest tests -m tpch --timeout=0 -s $(ARGS)

fuzz: $(READY) $(SERVERS) ## Random views and changes against recomputation (CASES=1000, or SECONDS=600 on DuckDB alone)
ifdef SECONDS
	$(RUN)/python -m tests.soak.random_views --seconds $(SECONDS) $(ARGS)
else
	VIEWKEEPER_FUZZ_CASES=$(CASES) VIEWKEEPER_FUZZ_LARGEST=10000 $(RUN)/python -m pytest tests/properties --timeout=0 $(ARGS)
endif

fuzz-spark: $(READY) ## Random views of all that Spark SQL has, kept on Spark (CASES=1000 refreshes of views, SEED=n)
	VIEWKEEPER_SPARK_CASES=$(CASES) $(if $(SEED),VIEWKEEPER_FUZZ_SEED=$(SEED)) $(RUN)/python -m pytest tests/properties/test_spark_views.py --timeout=0 -s $(ARGS)

histories: $(READY) ## Random histories of statements, kills and other writers (CASES=1000, or SEED=n for one of them)
	VIEWKEEPER_HISTORIES=$(CASES) $(if $(SEED),VIEWKEEPER_HISTORY_SEED=$(SEED)) $(RUN)/python -m pytest tests/histories --timeout=0 -s $(ARGS)

soak: $(READY) ## Kill refreshes at random and check what is left (KILLS=500 or SECONDS=3600)
	$(RUN)/python -m tests.soak.kill_soak $(if $(KILLS),--kills $(KILLS)) $(if $(SECONDS),--seconds $(SECONDS))

bench: $(READY) ## Measure refreshing against recomputing (benchmarks/README.md lists all benchmarks)
	$(RUN)/python -m benchmarks.run $(ARGS)

fmt: $(READY) ## Format the code and repair what the linter can
	$(RUN)/ruff format .
	$(RUN)/ruff check --fix .

lock: ## Write requirements.lock from pyproject.toml (ARGS=--upgrade for newer packages)
	@tools/setup.sh lock $(ARGS)

clean: ## Remove everything that make and the tools created, .venv and the jars too
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(PACKAGES): requirements.lock tools/setup.sh
	@tools/setup.sh packages
	@mkdir -p $(@D) && touch $@

$(PROJECT): $(PACKAGES) pyproject.toml
	@tools/setup.sh project
	@mkdir -p $(@D) && touch $@

$(JARS): $(PROJECT) src/viewkeeper/execution/jars.py
	@tools/setup.sh jars
	@mkdir -p $(@D) && touch $@

$(POSTGRES): tools/setup.sh
	@tools/setup.sh postgres
	@mkdir -p $(@D) && touch $@
