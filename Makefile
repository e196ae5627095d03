# netdiag: `make probe` to see it work, `make test` to check it. Everything Python goes into .venv; nothing else is touched.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
TESTING := $(VENV)/.testing
URL     ?=
ARGS    ?=
PYTEST  ?= -n auto --dist loadgroup

.PHONY: help probe test lint check bench clean setup captures

help:
	@echo "make probe [URL=https://…]  one probe over HTTP/1.1 and HTTP/2 with a live capture: the timeline, and timeline.png"
	@echo "make test                   all tests (installs what they need; says what is missing)"
	@echo "make lint                   ruff, mypy --strict, import contract"
	@echo "make bench                  speed beside tshark and others, as ratios"
	@echo "make captures               make the captures in captures/ again with the lab"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(READY): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(TESTING): $(READY)
	$(BIN)/python -m pip install --quiet --group test --group lint
	@touch $@

setup: $(READY)

probe: $(READY)
	$(BIN)/netdiag probe $(if $(URL),'$(URL)',--lab) -o timeline.png --force $(ARGS)

test: $(TESTING)
	@sh tests/system-packages.sh
	@# Many tests measure milliseconds. What failed beside other tests gets one more run, alone: a real fault fails again.
	$(BIN)/python -m pytest $(PYTEST) || \
	    $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

lint: $(TESTING)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

bench: $(TESTING)
	@sh tests/system-packages.sh
	$(BIN)/python -m pytest -m benchmark -s -q tests/benchmarks

captures: $(TESTING)
	$(BIN)/python -m pytest tests/captures --regenerate

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis timeline.png
