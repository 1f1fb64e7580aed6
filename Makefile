PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.core
STAMP  := $(VENV)/.installed

.PHONY: demo docs notebooks test lint types unit test-slow test-large test-gpu wheel clean clean-kernels

demo: $(CORE)  ## build the sort witness and show it working
	$(BIN)/thereexists build sort --n 3 --delta 1/8 --out build/sort
	$(BIN)/thereexists show build/sort
	$(BIN)/thereexists run build/sort --input "0.7 0.1 0.4"
	$(BIN)/thereexists trace build/sort --input "0.7 0.1 0.4"

docs: $(STAMP)  ## the documentation as a site that opens offline: build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site  # with --quiet nothing would be strict

notebooks: $(STAMP)  ## the examples as Jupyter notebooks: build/notebooks
	mkdir -p build/notebooks
	for script in examples/0*.py; do \
	  $(BIN)/jupytext --quiet --to ipynb --output build/notebooks/$$(basename $$script .py).ipynb $$script || exit 1; \
	done

test: $(STAMP)  ## everything CI asks for, two at a time; tests/docs builds the site, strictly, and runs its examples
	$(MAKE) --no-print-directory --jobs=2 lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Room for young objects: with Node's own 16 MiB a seventh of the time goes into collecting garbage.
types: export NODE_OPTIONS = --max-semi-space-size=128
types: $(STAMP)
	$(BIN)/basedpyright

# Each worker begins with half of the tests and takes from the other's when it is done: tests that share a witness or a
# site stay together. Bytecode is kept: without it every process would compile the package and the tests again.
unit: export PYTHONDONTWRITEBYTECODE =
unit: $(STAMP)
	$(BIN)/pytest -q -n 2 --dist worksteal

test-slow: $(STAMP)
	$(BIN)/pytest -q -m slow

test-large: $(STAMP)  ## the largest dense witness, 4.4 GB, in little memory; takes 10 GB of disk
	$(BIN)/pytest -q -s -m large

test-gpu: $(STAMP)  ## workers share the GPU, since they compile most of the time; benchmarks of the docs run alone
	$(BIN)/pytest -v -n 8 -m gpu --ignore=tests/docs
	$(BIN)/pytest -v -m gpu tests/docs

wheel: $(STAMP)  ## the wheel and the source archive of a release: build/dist
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist

# Two stamps: the demo needs the core dependencies only, a quarter of what the tests need. Whichever comes second finds
# what the first one installed.
$(CORE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $(CORE)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e ".[dev]"
	touch $(CORE) $(STAMP)

# Numba does not notice that a function changed which a kernel takes from another file: `make clean-kernels` after that.
clean-kernels:
	find src -name '*.nb[ci]' -delete

clean: clean-kernels
	rm -rf $(VENV) build .pytest_cache .ruff_cache
