# gradscope: everything a developer types.  `make help` lists it.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Where it is set, every python that is started compiles all of gradscope and of the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help all demo test test-all test-ci test-clinic test-long test-ops test-models test-page test-pythons test-oldest-torch fuzz page site dist-check check pyright format docs test-rule new-rule gallery bench bench-runs bench-doctor bench-injected frozen bench-page clean

help: ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

all: check page site dist-check demo test ## everything that CI runs

demo: $(INSTALLED) ## set up, run gradscope on an example, show the tree and draw the picture
	@mkdir -p demo-out
	$(BIN)/gradscope backward examples/weights.py --gradient "[0.1, 1, 0.0001]"
	$(BIN)/gradscope backward examples/weights.py --gradient "[0.1, 1, 0.0001]" -q -o demo-out/weights.svg > /dev/null
	$(BIN)/gradscope backward examples/char_gpt/train.py -q -o demo-out/gpt.svg > /dev/null
	@echo
	@echo "Pictures: demo-out/weights.svg (the graph above), demo-out/gpt.svg (a 12-layer transformer)."

# Two processes more than two cores, as many a test waits for a browser or a process of its own; more
# threads of torch would only wait for one another.
TESTED = OMP_NUM_THREADS=1 $(1)/bin/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

test: $(INSTALLED) ## set up and run the tests that every change needs
	$(call TESTED,$(VENV)) -m "not long"

test-long: $(INSTALLED) ## the tests that take long and tell of few changes: browsers, depth, all programs beside python
	$(call TESTED,$(VENV)) -m long

test-ci: $(INSTALLED) ## test and test-long at once, as CI does: no process waits for the last one twice
	$(call TESTED,$(VENV))

test-all: test test-long test-clinic test-ops test-models ## these and the long campaigns

test-clinic: $(INSTALLED) ## all programs of the clinic under the doctor (minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/test_clinic.py tests/clinic/everything.py

test-ops: $(INSTALLED) ## every operator of torch's own database through every command (minutes)
	$(BIN)/python -m pytest -n 2 tests/operators/everything.py

test-models: $(VENV)/.models ## seventy small models, of torch and other packages, through the commands (minutes)
	$(BIN)/python -m pytest -n 2 tests/models/everything.py

page: ## build the viewer of the interactive page into the package (needs Node.js 20 or newer)
	cd web && npm ci --no-audit --no-fund
	cd web && npm run build

test-page: $(INSTALLED) ## test only the interactive page, also in a browser
	$(BIN)/python -m pytest tests/test_page.py tests/test_page_in_browser.py

# Each in an environment of its own; a version of Python that is not there is an error.  Where pip finds
# no CPU build of torch for one, it takes gigabytes of CUDA.
PYTHONS ?= 3.12 3.13
TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)
OLDEST_TORCH := 2.6.0

test-pythons: $(PYTHONS:%=test-python-%) test-oldest-torch ## all tests under other Pythons (PYTHONS, TORCH) and the oldest torch

test-oldest-torch:
	$(MAKE) test-python-3.11 TORCH=$(OLDEST_TORCH)

test-python-%:
	python=$$(for one in python$* "$$HOME"/.pyenv/versions/$*.*/bin/python; do \
	  "$$one" -c '' 2> /dev/null && echo "$$one" && break; done) \
	  || { echo "there is no Python $*: leave it out of PYTHONS" >&2; exit 1; }; \
	"$$python" -m venv .venv-$*-$(TORCH)
	@mkdir -p build
	sed 's/^torch==.*/torch==$(TORCH)/' constraints.txt > build/torch-$(TORCH).txt
	.venv-$*-$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check -c build/torch-$(TORCH).txt -e '.[dot,dev]'
	$(call TESTED,.venv-$*-$(TORCH))

fuzz: MINUTES ?= 5
fuzz: JOBS ?= 1
fuzz: $(INSTALLED) ## run random programs for MINUTES on JOBS cores; SEED repeats a run
	$(BIN)/python -m tests.fuzz.faults --moments 10
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

site: $(VENV)/.site ## build the docs as a site into build/site; a broken link fails
	$(BIN)/python -m tests.site build/pages
	$(BIN)/zensical build --clean --strict

dist-check: $(INSTALLED) ## build wheel and sdist, install them with and without each extra, and use them
	$(BIN)/python -m tests.distribution

check: $(INSTALLED) ## format, lint and types, over code and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

pyright: $(INSTALLED) ## types as pyright sees them, in a program of a user (needs Node.js)
	npx --yes pyright@1.1.414 --pythonpath $(BIN)/python tests/api_user.py

format: $(INSTALLED) ## rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(INSTALLED) ## regenerate what the docs show: help texts, transcripts, pictures
	$(BIN)/gradscope backward examples/weights.py --gradient "[0.1, 1, 0.0001]" -q -o docs/img/weights.svg
	$(BIN)/gradscope explain examples/chain_rule.py -q -o docs/img/chain.svg
	$(BIN)/gradscope backward examples/char_gpt/train.py -q -o docs/img/gpt.svg
	$(BIN)/python -m tests.reference
	$(BIN)/python -m tests.transcripts

test-rule: $(INSTALLED) ## what is asked of one rule: CODE=GS209 NAME=stuck_relu
	$(BIN)/python -m pytest -n 2 tests/test_rules.py tests/test_diagnose.py tests/test_thresholds.py tests/test_clinic.py \
		-k "$(CODE) or $(NAME) or every_number or precedence or docs_show or distinct"

new-rule: $(INSTALLED) ## write the file of a rule of the doctor: CHAPTER=sizes NAME=stuck-relu
	$(BIN)/python -m tests.new_rule $(CHAPTER) $(NAME)

gallery: $(INSTALLED) ## draw the pictures of docs/gallery.md again
	$(BIN)/python -m benchmarks.gallery

bench: $(VENV)/.bench ## measure what gradscope costs, beside other tools, into docs/performance.md
	$(BIN)/python -m benchmarks.performance

bench-runs: $(INSTALLED) ## measure what the doctor costs in twenty whole programs, into docs/performance.md
	$(BIN)/python -m benchmarks.whole_runs

bench-doctor: $(VENV)/.bench ## count what the doctor finds, beside other tools, into docs/doctor-measured.md
	$(BIN)/python -m benchmarks.doctor_table

bench-injected: $(VENV)/.bench ## count what the doctor finds of faults put into healthy programs, into docs/doctor-measured.md
	$(BIN)/python -m benchmarks.injected

frozen: $(VENV)/.bench ## what the doctor says otherwise than what is kept (a quarter of an hour)
	$(BIN)/python -m benchmarks.frozen

bench-page: $(INSTALLED) ## measure the interactive page in a browser, into docs/page.md
	$(BIN)/python -m benchmarks.page

clean: ## remove everything that was built
	rm -rf $(VENV) .venv-* demo-out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

# What is installed from the start; CI needs the builder of the site as well.
EXTRAS ?= dot,dev

# The constraints pin the CPU build of torch; without them pip may fetch gigabytes of CUDA.  Python
# compiles what is imported, a third of the files; pip would compile all, a minute on one core.
$(INSTALLED): INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -c constraints.txt torch==2.13.0
	$(INSTALL) -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.site: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	@touch $@

$(VENV)/.bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

$(VENV)/.models: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[models]'
	@touch $@
