# Two commands: `make demo` goes from a table of flights to a page about them, `make test` checks
# the code; `make test-slow` adds what takes long. `make docs` builds the site, `make docs-serve`
# shows it; `make cluster-demo` shows a fit on a cluster of processes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SITE_READY := $(VENV)/.site-ready
# Python keeps the bytecode of what is imported, whatever the environment says: tests start many
# processes. That of modules that nobody imports need not be made at installation.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install --quiet --no-compile

.PHONY: demo cluster-demo docs docs-quick docs-serve test test-slow test-lowest soak lint bench bench-quick clean

demo: $(READY)
	$(PIP) --group demo
	$(BIN)/python examples/write_flights.py demo/flights.parquet
	$(BIN)/smartcpd fit demo/flights.parquet --modes date,hour,destination,airline --rank 8 \
		--out demo/flights --force

# Two worker processes on this machine; on a cluster: make cluster-demo SCHEDULER=tcp://host:8786
cluster-demo: $(READY)
	$(BIN)/python examples/cluster_demo.py $(SCHEDULER)

# The site, in docs/_build/html: every warning is an error, and so is a link that leads nowhere, a
# public name without an entry, and code on a page that prints something else than is shown.
docs: $(SITE_READY)
	$(SITE)

# The same, but long examples of the gallery are shown without being run.
docs-quick: $(SITE_READY)
	SMARTCPD_QUICK_DOCS=1 $(SITE)

PORT ?= 8000
docs-serve: docs
	$(BIN)/python -m http.server --directory docs/_build/html $(PORT)

SITE = $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs docs/_build/html \
	&& $(BIN)/python docs/_site/check_links.py docs/_build/html \
	&& $(BIN)/python docs/_site/check_names.py docs/_build/html \
	&& SMARTCPD_ALL_PAGES=1 $(BIN)/python -m pytest -n 0 tests/test_pages.py

test: $(READY) lint
	$(BIN)/python -m pytest -m "not slow"

# Longer studies, kills, clusters and builds: a second or more each. They run before a change lands.
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

# Attacks on every promise for so many SECONDS, from a SEED: damaged files, odd fits, kills, faults of
# the file system, threads and forks, clusters. One part alone: make soak PART=kills.
SEED ?= 0
SECONDS ?= 3600
soak: $(READY)
	$(BIN)/python tests/hostile/soak $(PART) --seed $(SEED) --seconds $(SECONDS)

# The oldest versions that pyproject.toml allows, in an environment of their own. Old packages use
# what newer ones deprecate, and xarray once said that it changes the precision of dates, so neither
# is an error here.
LOWEST := .venv-lowest
TESTS ?= tests/test_estimator.py tests/test_working_with_models.py tests/test_tables.py \
	tests/test_cli.py tests/test_model.py tests/test_plots.py
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet -r tests/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --no-deps -e .
	$(LOWEST)/bin/python -m pytest -W ignore::DeprecationWarning \
		-W "ignore:Converting non-nanosecond:UserWarning" $(TESTS)

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/mypy

# Every case, hours of it; one alone: make bench CASE=growth. Writes benchmarks/RESULTS.md.
bench: $(READY)
	$(PIP) --group bench
	$(BIN)/python -m benchmarks $(CASE)

# Few seeds and repeats, in minutes. Writes benchmarks/quick/RESULTS.md.
bench-quick: $(READY)
	$(PIP) --group bench
	$(BIN)/python -m benchmarks --quick $(CASE)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) --group dev -e ".[all]"
	touch $(READY)

$(SITE_READY): $(READY)
	$(PIP) --group docs
	$(PIP) --no-deps --group gallery
	touch $(SITE_READY)

clean:
	rm -rf $(VENV) $(LOWEST) build demo dist docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
