# The course's commands. `make help` lists them.

PORT ?= 8000
# LIVE=0 leaves out what runs in the browser, and its tests.
LIVE ?= 1
export LIVE
VENV := .venv
BIN := $(VENV)/bin

# The first Python of a version that the pinned packages support; `make course PYTHON=...` overrides it.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c '$(SUPPORTED)' 2>/dev/null && echo $$p && exit; done; echo python3)

# Bytecode that cannot be written makes every kernel start three times slower.
unexport PYTHONDONTWRITEBYTECODE
export JUPYTER_PREFER_ENV_PATH := 1
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help course venv book live pdf exercises grade summary serve lab formgrader coverage test quick lint types check audit bench lock clean distclean

help: ## list the commands
	@echo "usage: make COMMAND"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

course: venv ## do all the set-up: packages, book, learner notebooks, demo class, summary
	@$(BIN)/python -m tools.course

venv: ## make .venv from requirements.txt (every other command does it first)
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "error: $(PYTHON) is not installed; install Python 3.11, 3.12 or 3.13 and run the command again." >&2; exit 1; }
	@$(PYTHON) tools/setup_venv.py

book: venv ## build the book with every lesson executed (LIVE=0: without what runs in the browser)
	@$(BIN)/python -m tools.book

live: venv ## build what runs in the browser, below the built book
	@$(BIN)/python -m tools.live

exercises: venv ## generate the learner notebooks from solutions/
	@$(BIN)/grader release

grade: venv ## make the demo class, grade it, write feedback and scores
	@$(BIN)/grader demo

summary: venv ## show what was built and where to open it
	@$(BIN)/python -m tools.course --summary

pdf: book ## print the whole book into _build/feed-forward-sublayer.pdf (needs Chromium)
	@$(BIN)/python -m tools.pdf

serve: venv ## serve the built book on this machine (PORT=8000)
	@$(BIN)/python -m tools.serve --port $(PORT)

lab: venv ## open JupyterLab on your own copies of the exercises, in work/
	@$(BIN)/python -m tools.lab --port $(PORT)

formgrader: venv ## open nbgrader's formgrader on the course
	@$(BIN)/python -m tools.lab --formgrader --port $(PORT)

coverage: venv ## list which published values the executed lessons check
	@$(BIN)/python -m ffn.published

test: venv lint types ## run everything that must pass: style, types, tests, notebooks, book
	@$(BIN)/python -m tools.course --quiet
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q --nbval solutions _build/html/notebooks -n 2 --dist loadfile

quick: venv lint types ## run the tests that are not marked slow
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow and not browser" -n 2 --dist loadfile

lint: venv ## check style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: venv ## check types of ffn, grader and tools
	@$(BIN)/mypy

check: venv ## check your own notebook: make check NB=work/UNIT/UNIT.ipynb
	@test -n "$(NB)" || { echo "error: name the notebook: make check NB=work/UNIT/UNIT.ipynb" >&2; exit 2; }
	@$(BIN)/grader check "$(NB)"

audit: venv ## put known wrong, right and mutated answers, and hostile submissions, into the exercises and see what comes of it
	@$(BIN)/python -m tools.audit

bench: venv ## compare speeds side by side (bench/)
	@missed=""; for name in forward book grading check lighthouse browser scale; do \
	  $(BIN)/python -m bench.$$name || missed="$$missed $$name"; \
	done; test -z "$$missed" || { echo "error: missed a bar or failed:$$missed" >&2; exit 1; }

lock: venv ## pin requirements.txt anew from pyproject.toml (needs the network)
	@$(BIN)/python tools/lock.py

clean: ## remove what was built, keep .venv and your work
	rm -rf _build grader/var .mypy_cache .ruff_cache .pytest_cache .hypothesis

distclean: clean ## remove .venv too
	rm -rf $(VENV) ffn_course.egg-info
