# Every target makes .venv first when needed; tools/install.py holds the lock and knows when it is not.
PYTHON ?= python3
VENV := .venv/bin
JOBS ?= auto
OUT ?= out
QUICK ?=
FUZZ ?=
# The Python that has torch (and a GPU): `make test-gpu TORCH_PYTHON=python3` on a machine with its own.
TORCH_PYTHON ?= $(VENV)/python

.PHONY: help install demo reproduce test test-lowest test-browser test-gpu fuzz lint bench lock clean

help:
	@echo "make reproduce the paper's Figure 1: results, table and figures (QUICK=1: seconds, for a look)"
	@echo "make demo      where to look first, and one exploration that serves three rewards"
	@echo "make test      the test suite"
	@echo "make test-lowest  the test suite with every dependency in the lowest version that is allowed"
	@echo "make test-browser  the page of a sweep in a real Chromium (installed with apt, as root, if it is not there)"
	@echo "make fuzz      10,000 damaged files and 20,000 odd formulas (FUZZ='--files 100000 --seed 1': more of them)"
	@echo "make lint      ruff and mypy --strict"
	@echo "make bench     the speed table against scikit-learn (QUICK=1: small sizes)"
	@echo "make test-gpu  torch parity, on CUDA where there is one (TORCH_PYTHON=python3: an own torch)"
	@echo "make install   .venv with the package, its tests and the rewardfree command"

install:
	@$(PYTHON) tools/install.py

demo: install
	@$(VENV)/rewardfree demo --out $(OUT)/demo $(if $(QUICK),--quick)

reproduce: install
	@$(VENV)/rewardfree reproduce figure1 --out $(OUT)/reproduce $(if $(QUICK),--quick)

test: install
	@$(VENV)/python -m pytest -n $(JOBS) -m "not torch and not browser"

# Not for every change: what an old version needs in turn comes in its newest one, which may break it at any time.
test-lowest: install
	@$(PYTHON) tools/install.py --lowest
	@.venv-lowest/bin/python -m pytest -n $(JOBS) -m "not torch and not browser"

# Without Chromium it says that nothing was run, and goes on.
test-browser: install
	@$(PYTHON) tools/browser.py; found=$$?; \
	if [ $$found -eq 0 ]; then $(VENV)/python -m pytest -m browser tests/test_browser.py; \
	elif [ $$found -ne 3 ]; then exit $$found; fi

test-gpu: $(if $(filter $(VENV)/python,$(TORCH_PYTHON)),install)
	@$(TORCH_PYTHON) tests/torch_parity.py

fuzz: install
	@OPENBLAS_NUM_THREADS=1 $(VENV)/python tools/fuzz.py --keep $(OUT)/fuzz $(FUZZ)

lint: install
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .
	@$(VENV)/mypy

bench: install
	@$(VENV)/python benchmarks/run.py $(if $(QUICK),--quick)

# Needs uv on the PATH. The lock file names no index: it works with whichever one pip is set up for.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--extra dev --upgrade pyproject.toml --output-file requirements/dev.txt

clean:
	rm -rf .venv .venv.lock .venv-lowest .venv-lowest.lock out .pytest_cache .mypy_cache .ruff_cache .hypothesis
