# The commands of normlab. `make` lists them. GNU make, on Linux and macOS; on
# Windows from Git Bash (see CONTRIBUTING.md).

VENV   ?= .venv
PYTHON ?=
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
RUN    := $(BIN)/python -m
STAMP  := $(VENV)/.normlab
GRADER := $(VENV)/.nbgrader

# Chapter 00, or 06 as long as that is not written.
FIRST  := $(firstword $(wildcard notebooks/00*.ipynb notebooks/06*.ipynb))
# Jupyter refuses to run as root (in a container, say) without being told to.
ROOT   := $(if $(filter 0,$(shell id -u)),--allow-root)
# Images of containers like to forbid compiled files. Without them every process, and
# there is one for each notebook, spends seconds on compiling torch and the rest anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help lab test unit lint notebooks book serve bench assignment browser lock clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s%s\n", $$1, $$2}' Makefile

lab: $(STAMP) ## open the course in JupyterLab (JUPYTER_ARGS=... passes options on)
	$(RUN) jupyter lab $(ROOT) --LabApp.default_url=/lab/tree/$(FIRST) $(JUPYTER_ARGS)

test: $(STAMP) ## prove everything: style, units, notebooks, browser
	@$(MAKE) --no-print-directory -j3 $(GRADER) lint browser
	$(RUN) pytest tests normlab notebooks \
	    --nbval --nbval-current-env --nbval-cell-timeout=120 \
	    -n 3 --dist loadfile --no-loadscope-reorder --cov=normlab --cov-report=term-missing:skip-covered \
	    --cov-fail-under=98

unit: $(STAMP) ## run the fast tests and the examples in docstrings
	$(RUN) pytest tests normlab -m "not browser and not slow" -n 2 --dist loadfile

lint: $(STAMP) ## check style and format, notebooks included
	$(RUN) ruff check
	$(RUN) ruff format --check

notebooks: $(STAMP) ## run every notebook, store its outputs, show time and memory
	$(BIN)/python tools/notebooks.py

book: $(STAMP) ## build the course as a website in book/_build/html
	$(BIN)/python tools/build_book.py

serve: book ## show that website at http://localhost:8000
	$(RUN) http.server 8000 --bind localhost --directory book/_build/html

bench: $(STAMP) browser ## measure our norms against PyTorch, diagrams, widgets, pages
	$(RUN) bench

# make assignment CHAPTERS="06 08" OUT=course SEED=20301; FIXED=1 counts all exercises.
OUT ?= course
assignment: $(GRADER) ## build a graded course for nbgrader in OUT=course (CHAPTERS="06 08")
	$(BIN)/python tools/assignment.py --out "$(OUT)" --seed "$(SEED)" \
	    $(if $(FIXED),--fixed) --chapters $(CHAPTERS)

browser: $(STAMP) ## find a browser for the browser tests, or install one
	$(BIN)/python tools/browser.py

# torch names its CUDA libraries and triton as exact versions in its own metadata.
# Only its CUDA builds need them, so they stay out of the lock: where such a build is
# installed, pip takes them from there.
lock: $(STAMP) ## renew requirements.lock and grading.lock from pyproject.toml
	$(RUN) pip install --quiet uv
	echo 'torch==2.13.0' > $(VENV)/torch.txt
	$(RUN) uv pip compile pyproject.toml --extra dev --universal --upgrade \
	    --python-version 3.11 --no-header --no-annotate --no-emit-find-links \
	    --constraints $(VENV)/torch.txt --output-file $(VENV)/all.txt --quiet
	grep -vE '^(nvidia-|cuda-|triton)' $(VENV)/all.txt > requirements.lock
	$(RUN) uv pip compile pyproject.toml --extra grading --universal \
	    --python-version 3.11 --no-header --no-annotate --no-emit-find-links \
	    --constraints requirements.lock --output-file $(VENV)/grading.txt --quiet
	grep -vxFf requirements.lock $(VENV)/grading.txt | \
	    grep -vE '^(nvidia-|cuda-|triton)' > grading.lock

clean: ## remove the environment and everything that was made
	rm -rf $(VENV) build dist *.egg-info book/_build .pytest_cache .ruff_cache \
	    .hypothesis .coverage .coverage.* htmlcov
	find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

$(STAMP): requirements.lock pyproject.toml tools/environment.sh
	@sh tools/environment.sh "$(VENV)" "$(BIN)" "$(PYTHON)"
	@touch $@

# What grading needs beside the environment. Its buttons stay out of JupyterLab until an
# instructor asks for them.
$(GRADER): grading.lock $(STAMP)
	@echo "normlab: adding nbgrader to the environment"
	$(RUN) pip install --quiet --no-compile --no-deps -r grading.lock
	$(RUN) pip check
	@$(RUN) jupyter labextension disable --level=sys_prefix \
	    "@jupyter/nbgrader" >/dev/null 2>&1
	@$(BIN)/python -c "from jupyter_server.extension.serverextension import \
	    toggle_server_extension_python as toggle; \
	    [toggle('nbgrader.server_extensions.' + part, False) for part in ( \
	    'formgrader', 'validate_assignment', 'assignment_list', 'course_list')]"
	@touch $@
