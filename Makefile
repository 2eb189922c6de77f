# Two commands on a fresh machine with Python 3.11.4+, git and make:
#   make demo    the environment from the lock file, then a release of a real table
#   make test    the quick tests
PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
READY := $(VENV)/.ready
# A worker a core, and one more for the time in which others wait for servers. Each gets a file at a time, in the
# order in which they are collected.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)))')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Without compiled modules every command would start seconds later.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONPATH
unexport VIRTUAL_ENV

.DEFAULT_GOAL := help
RELEASES ?= 1000
.PHONY: help env demo audit soak test test-all test-faults test-mutants check house docs format changelog wheel advisories schema lock clean

help:
	@echo "make demo      create .venv from requirements.lock and release the RAND health insurance table"
	@echo "make test      the quick tests"
	@echo "make test-all  the slow statistical suites too, and every example of every property"
	@echo "make test-faults  plants one fault after another, and looks whether the tests notice"
	@echo "make test-mutants  FILES=... small changes of the code one after another, each to be noticed by a test"
	@echo "make audit     hold the guarantee of the demonstration against replays and attacks; writes audit.html"
	@echo "make soak      RELEASES=1000 releases over one ledger, killed and cut off at random, each checked"
	@echo "make check     ruff, mypy, import-linter, the quick tests and the documentation"
	@echo "make house     the structure of the code in figures, each beside its bar"
	@echo "make docs      build site/, the documentation with the API reference; open site/index.html"
	@echo "make format    rewrite the code as ruff wants it"
	@echo "make changelog  move the files of changelog.d/ into CHANGELOG.md, under the version of the package"
	@echo "make wheel     build dist/*.whl, with its bill of materials and checksums"
	@echo "make advisories  known vulnerabilities of the pinned packages, if an index can be asked"
	@echo "make schema    write schemas/ again, from the typed spec and for the manifest"
	@echo "make lock      resolve requirements.lock again"
	@echo "make clean     remove .venv, builds and caches; data/, outputs/ and ledgers stay"

env: $(READY)

# uv comes from the lock file too. Where it can't reach the index that pip is set up for, pip does its work; the lock
# file holds all that is needed, and pip, left to look for more, would take newer versions for unpinned ones.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4) and "dpsynth needs Python 3.11.4 or newer, and $(PYTHON) is %d.%d.%d. Say which one to use: make PYTHON=python3.12 ..." % sys.version_info[:3])'
	$(PYTHON) -m venv --clear $(VENV)
	@awk '/^uv==/ { on = 1 } on { print } on && !/\\$$/ { exit }' requirements.lock > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	UV_LINK_MODE=copy $(BIN)/python -m uv pip install --quiet --python $(BIN)/python --compile-bytecode \
	    --require-hashes -r requirements.lock || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
	    --no-build-isolation --editable .
	@touch $@

demo: $(READY)
	$(BIN)/dpsynth example randhie
	$(BIN)/dpsynth run configs/randhie.yaml

test: $(READY)
	$(PYTEST) -m "not slow"

test-all: $(READY)
	$(PYTEST) --hypothesis-profile=full

audit: $(READY)
	$(BIN)/dpsynth audit configs/randhie.yaml --page audit.html

soak: $(READY)
	$(BIN)/python -m tests.release.soak --releases $(RELEASES)

test-faults: $(READY)
	$(BIN)/python -m tests.faults

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m releasing.house
	$(MAKE) docs
	$(PYTEST) -m "not slow"

# With --quiet, --strict would let every warning through. The theme's own advertisement is switched off.
house: $(READY)
	$(BIN)/python -m releasing.house --features

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

changelog: $(READY)
	$(BIN)/towncrier build --yes --version "$$($(BIN)/python -c 'import dpsynth; print(dpsynth.__version__)')"

# The wheel, its bill of materials, and the checksums of both, which are what is signed.
wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build --wheel --no-isolation
	$(BIN)/python -m releasing.bill_of_materials dist/*.whl
	cd dist && sha256sum *.whl *.cdx.json > SHA256SUMS

advisories: $(READY)
	$(BIN)/python -m releasing.advisories

test-mutants: $(READY)
	$(BIN)/python -m tests.mutants $(FILES)

schema: $(READY)
	$(BIN)/python -m dpsynth.config.json_schema > schemas/dpsynth.schema.json.new
	mv schemas/dpsynth.schema.json.new schemas/dpsynth.schema.json
	$(BIN)/python -c 'from dpsynth.bundle.manifest import schema_text; print(schema_text(), end="")' > schemas/manifest.schema.json.new
	mv schemas/manifest.schema.json.new schemas/manifest.schema.json

lock: $(READY)
	$(BIN)/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --extra dask --extra demo --extra dev --extra duckdb --extra excel --extra postgres --extra s3 \
	    --no-emit-index-url --custom-compile-command "make lock" pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find dpsynth flows tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
