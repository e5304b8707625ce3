# make demo   set-up, then the main job on real input (docs/guide/demo.md shows the output)
# make test   set-up, then all checks and tests
# make setup  what both begin with; costs nothing when it is done

VENV := .venv
TORCH ?= torch==2.13.0
RUN := $(VENV)/bin
# Tests at the same time: a worker needs a core and some 2 GiB.
WORKERS ?= $(shell nproc)

.PHONY: demo test setup lint clean

demo: setup
	scripts/demo.sh

test: setup lint
# A file is one worker's, so that what its tests share is made once. The order is tests/conftest.py's.
# A worker that crashes ends the run: a new one in its place would wait for ever (pytest-xdist 3.8).
	$(RUN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0

lint: setup
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	MYPY_NUM_WORKERS=$(WORKERS) $(RUN)/mypy
	$(RUN)/lint-imports --no-logo

setup:
	TORCH="$(TORCH)" scripts/setup.sh $(VENV)

clean:
	rm -rf $(VENV) .nestor build
