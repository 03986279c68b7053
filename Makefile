# make demo   sets up .venv and runs the main job on the embedded default
# make test   sets up .venv and runs the tests
# Elsewhere plain torch is a CUDA build of several GB; on a CPU-only machine give TORCH_INDEX=<PyTorch's CPU index>, see README.
PYTHON ?= python3
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q
TORCH := $(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) torch==2.13.0,$(PIP) torch==2.13.0)

.PHONY: demo test check format figures study clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Rehear needs Python 3.11 or newer: give one as make PYTHON=python3.x"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) (a few minutes, once)"
	$(TORCH)
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.demo
	$(PIP) -e '.[demo,test]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/rehear demo $(DEMO)

test: $(VENV)/.test
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m 'not figures' $(TESTS)

check: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

figures: $(VENV)/.test
	$(BIN)/python -m pytest -q -m figures $(TESTS)

study: $(VENV)/.test
	$(BIN)/python -m tests.bench.study run

clean:
	rm -rf $(VENV) build *.egg-info
