# Everything a checkout needs: git, make and Python 3.11 or later. `make demo` and `make test` are the two to know.
PYTHON ?= python3
# On IBM Z and Power, in a torch image that brings numpy: make VENV_FLAGS=--system-site-packages …
VENV_FLAGS ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
# Touched when the native core was compiled, or could not be: everything works without it, only slower.
NATIVE := $(VENV)/.native
# Processes that run tests, more than there are cores: many tests wait for a terminal.
TESTERS ?= 3
# Byte-code of what is tested is kept, also where the environment says not to write any beside the sources: else each
# tester would compile all tests anew, and each process that a test starts all of the program.
BYTECODE := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX="$(CURDIR)/.pytest_cache/bytecode"
PYTEST := $(BYTECODE) $(BIN)/python -m pytest -n $(TESTERS) --dist worksteal
# What `make mutation` tries: "--since main", "--most 40 --seed 1 2", "FILE[:LINE] …".
MUTATION ?=
# What `make size` compares with: a commit.
SINCE ?=
# What `make bench` measures, and how: TRACE=path, BENCH="--size 1e8 --only frames"; made traces without.
TRACE ?=
BENCH ?=

# How long `make fuzz` runs each fuzzer, and where its random numbers begin.
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 1

# What `make bundle` packs for: PLATFORM=s390x or manylinux_2_28_s390x, PYTHONS="3.11 3.12"; this machine without.
PLATFORM ?=
# What `make test-s390x` and its like run: a folder or files of tests; all of core's without.
TESTS ?=
PYTHONS ?=

.PHONY: help setup native demo test test-fast test-corpus test-flaky test-s390x test-ppc64le test-aarch64 test-lowest test-matrix sanitize check format fuzz mutation size docs bench wheels bundle release screenshots pages clean

help:  ## show what can be made
	@grep -hE '^[a-z0-9 -]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/ .*:[^#]*## |:[^#]*## /\t/' | expand -t 14

setup: $(NATIVE)  ## make the virtual environment in .venv

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tracelane needs Python 3.11 or later: name one with PYTHON=python3.12" >&2; exit 1; }
	@for part in core tui; do [ -e src/tracelane/$$part ] || ln -s ../../$$part src/tracelane/$$part; done
	$(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,check]'
	@touch $@

$(NATIVE): $(STAMP) $(wildcard core/native/*.[ch])
	@$(MAKE) --no-print-directory native

native: $(STAMP)  ## compile the native core with $CC, or cc, gcc or clang, else with zig, which pip installs
	@$(BIN)/python bundle/native_build.py --install-compiler
	@touch $(NATIVE)

demo: $(NATIVE)  ## write the demo trace and open it; without a terminal print it
	@$(BIN)/tracelane demo --out demo

test: $(NATIVE)  ## run all tests, in a quarter of an hour on two cores; of a corpus that is there a part
	$(PYTEST)

test-fast: $(NATIVE)  ## run the tests that take less than half a second each, in a minute or two
	$(PYTEST) -m 'not slow'

test-corpus: $(NATIVE)  ## run what no clone can, and what `make test` runs a part of: all of the corpus, damages, forms
	$(PYTEST) -m 'corpus or real'

test-flaky: $(NATIVE)  ## run what tests/flaky.txt pardons, alone: there it must pass
	@$(BIN)/python -m tests.flaky

check: $(NATIVE)  ## format and lint, types, rooms, docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict -p tracelane
	$(BIN)/mypy tests benchmarks
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/python -m pytest tests/test_docs.py tests/test_walls.py tests/test_build_files.py tests/test_rules.py

sanitize: $(NATIVE)  ## test and fuzz the native core under ASan and UBSan, and all readers and outputs
	@$(BIN)/python bundle/sanitize.py
	@$(BIN)/python -m tests.fuzz.native_core 10
	@$(BIN)/python -m tests.fuzz.invariants 10

test-s390x test-ppc64le test-aarch64: $(STAMP)  ## run the core's tests emulated, in a minimal Debian (as root)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[wheels]'
	@sh tests/emulated.sh $(@:test-%=%) $(TESTS)

test-lowest: $(STAMP)  ## run the tests of core and tui with the lowest versions that are declared
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[matrix]'
	@$(BIN)/python tests/matrix.py --python 3.11 --versions lowest $(TESTS)

test-matrix: $(STAMP)  ## the same on Python 3.11 to 3.14, with the lowest and the newest versions each
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[matrix]'
	@$(BIN)/python tests/matrix.py $(TESTS)

format: $(STAMP)  ## put the code in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: $(NATIVE)  ## look for input that breaks something, FUZZ_SECONDS with each fuzzer, from FUZZ_SEED on
	@for fuzzer in $(notdir $(basename $(wildcard tests/fuzz/[a-z]*.py))); do \
	  echo $$fuzzer; $(BIN)/python -m tests.fuzz.$$fuzzer $(FUZZ_SECONDS) $(FUZZ_SEED) || exit 1; \
	done

mutation: $(NATIVE)  ## change single operators and list what no test notices: MUTATION="--since main" or "--seed 7"
	@$(BIN)/python -m tests.mutation $(MUTATION)

size: $(STAMP)  ## print how large each room is, and what changed since a commit: SINCE=COMMIT
	@$(BIN)/python -m tests.size $(if $(SINCE),--since $(SINCE))

docs: $(STAMP)  ## build the documents as a site with search: build/site
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@$(BIN)/python bundle/site.py

bench: $(NATIVE)  ## measure speed, memory, frames and slow lines, of made traces or TRACE=path
	@$(BIN)/python benchmarks/run.py $(if $(TRACE),"$(TRACE)") $(BENCH)

wheels: $(STAMP)  ## build a wheel with the native core for each platform, and one without
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[wheels]'
	@$(BIN)/python bundle/wheels.py $(PLATFORM:%=--platform %)

bundle: $(STAMP)  ## pack what an install without network needs, here or for PLATFORM=s390x
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[wheels]'
	@$(BIN)/python bundle/make.py $(if $(PLATFORM),--platform $(PLATFORM)) $(PYTHONS:%=--python %)

release: $(STAMP)  ## pack sdist, wheels and bundles with checksums, twice, and compare them
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[wheels]'
	@$(BIN)/python bundle/release.py $(RELEASE) $(if $(PLATFORM),--platform $(PLATFORM)) $(PYTHONS:%=--python %)

screenshots: $(NATIVE)  ## draw the pictures of the README anew
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[screenshots]'
	$(BIN)/python -m screenshots.make

pages: $(NATIVE)  ## draw a page of HTML as Chromium shows it, at three widths: to be looked at before a release
	@$(BIN)/python -m screenshots.pages

clean:  ## remove what was made here
	rm -rf core/native/_tracelane.native.* $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
