# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JAVA := . scripts/java.sh &&
# Two workers; tests/support/one_worker.py keeps the tests that share the Spark session on one of them.
PYTEST := $(BIN)/python -m pytest --numprocesses 2

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-slow test-spark matrix lint format fuzz bench clean
# The versions of Spark besides the newest, which .venv has; constraints/ says what each environment has instead of
# what constraints.txt says.
SPARKS := 3.5 4.0 4.1 4.2
SPARK_ENVIRONMENTS := $(SPARKS:%=.venv-spark-%)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, {sys.executable} is {v[0]}.{v[1]}: run `make PYTHON=python3.12 …`")'
	@echo "Setting up $(VENV) (once) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

.venv-%/.installed: constraints/%.txt constraints.txt pyproject.toml
	@echo "Setting up .venv-$* (once) …"
	@$(PYTHON) -m venv .venv-$*
	@awk -F== 'NR == FNR {own[tolower($$1)]} NR == FNR || !(tolower($$1) in own)' constraints/$*.txt constraints.txt > .venv-$*/constraints.txt
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-$*/constraints.txt --editable '.[test]'
	@touch $@

demo: $(STAMP) ## the main job on local Spark, every number measured in that run
	@$(JAVA) $(BIN)/indextables demo

test: lint ## linters, then every test except the long versions
	@$(JAVA) $(PYTEST) -m "not slow" $(ARGS)

test-fast: $(STAMP) ## tests that need no JVM
	@$(PYTEST) -m "not slow and not spark" $(ARGS)

test-slow: $(STAMP) ## the long versions too
	@$(JAVA) $(PYTEST) $(ARGS)

test-spark: $(STAMP) $(SPARK_ENVIRONMENTS:%=%/.installed) ## Spark's tests on every version of it, ARGS chooses some
	@$(JAVA) for at in $(VENV) $(SPARK_ENVIRONMENTS); do echo "$$at"; $$at/bin/python -m pytest -m "not slow" $(or $(ARGS),tests/engines/spark) || exit 1; done

matrix: $(STAMP) $(SPARK_ENVIRONMENTS:%=%/.installed) ## what works on which version of Spark, as a table
	@$(JAVA) $(BIN)/python scripts/spark_matrix.py $(SPARK_ENVIRONMENTS) $(VENV)

lint: $(STAMP) ## ruff, mypy --strict, import-linter, words and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@found=$$($(BIN)/lint-imports) || { echo "$$found"; exit 1; }; echo "$$found" | tail -n 2
	@$(BIN)/python scripts/words.py

format: $(STAMP) ## let ruff fix and format
	@$(BIN)/ruff check --fix-only . && $(BIN)/ruff format .

fuzz: $(STAMP) ## simulated runs and property tests, for hours if you like: SIMULATION_SEEDS=… FUZZ_EXAMPLES=… FUZZ_SECONDS=36000
	@cd tests && ../$(BIN)/python -m simulation.run --seeds $${SIMULATION_SEEDS:-20000}
	@$(JAVA) HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -k "property or fuzz" --timeout=0 $(ARGS)

bench: $(STAMP) ## every benchmark, results in benchmarks/results/
	@$(JAVA) $(BIN)/python benchmarks/run.py $(ARGS)

clean: ## remove the environment and caches
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
