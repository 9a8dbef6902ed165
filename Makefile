# From a fresh clone: `make matrix` runs everything this machine can run and writes reports/;
# `make test` runs the project's own tests. Both set themselves up; Python >= 3.10 is all they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# More options for the command, as in: make matrix ARGS="-k mish --via venv"
ARGS ?=

.PHONY: matrix first-contact test test-all lint lint-js docs coverage dist lock clean
.DEFAULT_GOAL := matrix

$(VENV)/run.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed, this is " + sys.version.split()[0] + "; say make PYTHON=python3.12")'
	@echo "setting up $(VENV), once: pip installs what the harness needs, which takes up to a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	@echo "adding the developers' tools to $(VENV), once"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

matrix: $(VENV)/run.stamp
	$(BIN)/python -m harness run $(ARGS)

# Ten minutes on a GPU for this project: one target, one image, and the file to send.
first-contact: $(VENV)/run.stamp
	@test -n "$(TARGET)" || { echo "name one: make first-contact TARGET=trt102 ARGS=\"--account NAME\""; exit 2; }
	-$(BIN)/python -m harness run --target "$(TARGET)" --pull
	$(BIN)/python -m harness submit --target "$(TARGET)" $(ARGS)

# All but what needs more than Python, git and a network, and what takes long.
test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests -n auto --dist worksteal \
		-m "not (docker or browser or contract or slurm or long)" $(ARGS)

test-all: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests -n auto --dist worksteal $(ARGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
# The agent runs on Python 3.8, and evaluates its annotations there.
	$(BIN)/vermin --quiet --violations --target=3.8- --eval-annotations --feature union-types harness/agent harness/plan/repro.py tests/agent/faulty.py
	$(BIN)/hadolint docker/*.Dockerfile
	$(BIN)/shellcheck docker/plugin/build.sh harness/cli/start/gate.sh $(filter-out .ci/environment,$(wildcard .ci/*))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/zizmor --offline --quiet .github/workflows action.yml
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory lint-js; else echo "the page's scripts are not checked: npm is not here"; fi

# The scripts of the report's page: their form, their types, and what is likely a mistake. `make lint-js PRETTIER=--write`
# puts them in form. Nothing of it is needed to use the harness.
JS := tools/js/node_modules
PRETTIER ?= --check
lint-js: $(JS)/.package-lock.json
	$(JS)/.bin/prettier --config tools/js/prettier.config.js --log-level warn $(PRETTIER) 'harness/report/static/*.{js,css}' 'tools/js/*.{js,ts}'
	$(JS)/.bin/tsc --project tools/js
	$(JS)/.bin/eslint --config tools/js/eslint.config.js --max-warnings 0 harness/report/static

$(JS)/.package-lock.json: tools/js/package.json tools/js/package-lock.json
	npm ci --prefix tools/js --silent --no-audit --no-fund
	@touch $@

# Every file that is made from the code; to be run after a change to matrix.yaml or the adapter.
docs: $(VENV)/dev.stamp
	$(BIN)/python -m tools.docs

# Which lines and branches no unit test runs: a table, the worst last, and each line in build/coverage/html.
coverage: $(VENV)/dev.stamp
	mkdir -p build/coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests -n auto -m "unit and not long" $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --fail-under=0
	$(BIN)/coverage report

# What `pip install trt-compat` installs: dist/*.whl, built from the source distribution beside it.
dist: $(VENV)/run.stamp
	rm -rf dist
	$(BIN)/uv build --quiet --out-dir dist

# The exact versions that developers and CI use; users get what pyproject.toml allows.
lock: $(VENV)/dev.stamp
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --extra dev --no-emit-index-url --no-annotate --no-header --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) $(JS) build dist .mypy_cache .ruff_cache .pytest_cache
