# Everything needs Python 3.11 or later, pip and make; nothing else. Another Python: make demo PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST = $(BIN)/python -m pytest -n logical --dist loadfile

.PHONY: demo test test-all bench docs lint format clean

demo: $(VENV)/.installed
	rm -rf demo-run
	$(BIN)/curate run pipelines/corpus.yaml --out demo-run
	@echo; echo "kept rows: demo-run/kept   why a row went: $(BIN)/curate why demo-run d0042   report: demo-run/report.html"

test: $(VENV)/.dev
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.dev
	$(PYTEST)

bench: $(VENV)/.dev
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

docs: $(VENV)/.installed
	$(BIN)/python docs/generate.py

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python .ci/house_rules.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) demo-run build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find curate tests sample_data -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "curate needs Python 3.11 or later, and \`$(PYTHON)\` is not one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing curate and its libraries into $(VENV) (a minute or two, once)"
	$(PIP) install --constraint constraints.txt --editable .
	@echo "compiling the kernels, once"
	$(BIN)/curate doctor --json >/dev/null
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --group dev
	@touch $@
