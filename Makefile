# Commands for developers; `make` without a target lists them.
PYTHON ?= python3
UV_VERSION := 0.13.8
BIN := .venv/bin
UV := $(BIN)/uv
# uv trusts the certificates of the system, as pip does, so that both work behind a proxy with its own authority.
export UV_SYSTEM_CERTS ?= 1
# Tests wait on sockets and disks as much as they compute: four processes keep two cores busy.
TEST_PROCESSES ?= 4
# The long tests start whole installations, so two at a time.
LONG_PROCESSES ?= 2
# Each process has its own browser, which has several processes too.
BROWSERS ?= 2
# Containers set this; then every process of the suite would compile its imports again.
unexport PYTHONDONTWRITEBYTECODE
# These have targets of their own.
OTHERS := not clients and not generators and not manifests and not typescript and not openid and not browser and not long and not faults and not security and not fuzz
SOURCES := almanac_start.py app workers scheduling providers store clients tests docs/site deploy/wheel
# The sources of the documentation site.
SITE_SOURCES := mkdocs.yml $(shell find docs -path docs/engineering -prune -o -type f ! -name '*.pyc' -print)

.DEFAULT_GOAL := help
.PHONY: help setup docs demo access audit test test-slow test-long test-races test-faults test-security test-live test-clients test-generators test-openid test-manifests release-rehearsal image-dry-run test-typescript client-types bruno test-browser browser fuzz soak screenshots pictures check bench fix lock settings

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | grep -vE '^(test-|fuzz|soak)' | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'
	@echo "Longer tests, of which .ci/run has the order:"
	@grep -E '^(test-[a-z]+|fuzz|soak):.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: .venv/.installed build/site/index.html ## virtual environment in .venv, everything from the lock file

.venv/.installed: requirements/dev.txt pyproject.toml clients/python/pyproject.toml
	@echo "Setting up .venv from requirements/dev.txt ..."
	@$(PYTHON) -c 'import sys; sys.exit("Almanac needs Python 3.11 or later; try: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps -e . -e clients/python
	@touch $@

docs: .venv/.installed build/site/index.html ## the documentation site, in build/site; a link that leads nowhere fails

build/site/index.html: .venv/.installed $(SITE_SOURCES)
	@echo "Building the documentation ..."
	@$(BIN)/python docs/site/build.py

.venv/.clients: .venv/.installed requirements/clients.txt
	@echo "Installing the official provider clients (about 400 MB) ..."
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/clients.txt
	@touch $@

.venv/.generators: .venv/.installed requirements/generators.txt
	@echo "Installing a generator of Python clients ..."
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/generators.txt
	@touch $@

.venv/.manifests: .venv/.installed requirements/manifests.txt
	@echo "Installing the tools that render and validate manifests (about 200 MB) ..."
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/manifests.txt
	@touch $@

.venv/.audit: .venv/.installed requirements/audit.txt
	@echo "Installing pip-audit ..."
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/audit.txt
	@touch $@

.venv/.bench: .venv/.installed requirements/bench.txt
	@echo "Installing the packages that benchmarks need ..."
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/bench.txt
	@touch $@

demo: setup ## start everything with demo data; prints an example request; PORT=8180 SANDBOX_PORT= BOOKING_PORT=
	@$(BIN)/almanac demo $(if $(PORT),--port $(PORT)) $(if $(SANDBOX_PORT),--sandbox-port $(SANDBOX_PORT)) \
	  $(if $(BOOKING_PORT),--booking-port $(BOOKING_PORT)) $(ARGS)

test: setup ## the test suite; needs no other service
	@$(BIN)/python -m pytest -m "$(OTHERS) and not slow" -n $(TEST_PROCESSES) --dist worksteal

test-slow: setup ## the slow tests, on PostgreSQL if it runs here: they start processes, wait, or repeat a fault on many routes
	@$(BIN)/python -m pytest -m "$(OTHERS) and slow" -n $(TEST_PROCESSES) --dist worksteal

test-long: setup ## 10 000 examples of each property, a rolling upgrade, long schemathesis runs; ONLY="not schemathesis"
	@command -v pgbouncer >/dev/null || ! command -v apt-get >/dev/null || { \
	  echo "Installing pgbouncer ..."; \
	  apt-get install --yes --quiet --no-install-recommends pgbouncer >/dev/null; }
	@$(BIN)/python -m pytest -m long -n $(LONG_PROCESSES) --dist worksteal $(if $(ONLY),-k "$(ONLY)")

test-races: setup ## races for one slot of a mailbox or room by every way, with workers killed; ROUNDS=200
	@ALMANAC_RACE_ROUNDS=$(or $(ROUNDS),200) $(BIN)/python -m pytest tests/app/events/test_mailbox_races.py -s

test-faults: setup ## kill, stop and slow down parts of whole installations; writes docs/engineering/reliability.md
	@command -v sqlite3 >/dev/null || ! command -v apt-get >/dev/null || { \
	  echo "Installing sqlite3 ..."; \
	  apt-get install --yes --quiet --no-install-recommends sqlite3 >/dev/null; }
	@$(BIN)/python -m pytest tests/faults
	@$(BIN)/python -m tests.faults.document

test-security: setup ## thousands of attack inputs, and a search for secrets in a whole installation
	@$(BIN)/python -m pytest -m security -n $(TEST_PROCESSES) --dist worksteal

fuzz: setup ## many wrong bytes, mutated answers of providers and random walks through the API; EXAMPLES=2000
	@ALMANAC_EXAMPLES=$(or $(EXAMPLES),2000) $(BIN)/python -m pytest tests/fuzz --timeout=7200

test-live: setup ## the adapters against real accounts of Google and Microsoft; says which credentials it needs
	@$(BIN)/python -m tests.live

test-clients: .venv/.clients ## the sandbox against the official Google and Microsoft clients
	@$(BIN)/python -m pytest -m clients

test-generators: .venv/.generators tests/generators/node_modules/.package-lock.json ## clients generated from the OpenAPI document, in TypeScript and Python
	@$(BIN)/python -m pytest tests/generators

access: setup ## write the table of docs/operate/access.md again: routes by API keys and by roles
	@ALMANAC_RECORD_ACCESS=1 $(BIN)/python -m pytest tests/security/test_access_table.py

examples: setup ## record the examples of the OpenAPI document again, from the answers to the contract's rows
	@ALMANAC_RECORD_EXAMPLES=1 $(BIN)/python -m pytest tests/contract

test-manifests: .venv/.manifests tests/packaging/keda/node_modules/.package-lock.json ## the Helm chart and the compose file: rendered, and validated by schemas
	@$(BIN)/python -m pytest -m manifests tests/packaging

release-rehearsal: setup ## build the wheel, install it outside of the repository, and start the demo there; TAG=v1.1.0
	@$(BIN)/python -m tests.packaging.rehearsal $(TAG)

image-dry-run: setup ## the steps of the Dockerfile in a clean Debian root, without a container engine; needs root
	@command -v debootstrap >/dev/null || { \
	  echo "Installing debootstrap ..."; \
	  apt-get install --yes --quiet --no-install-recommends debootstrap >/dev/null; }
	@$(BIN)/python -m tests.packaging.image_dry_run

test-typescript: setup clients/typescript/node_modules/.package-lock.json ## the TypeScript client, against a running service
	@$(BIN)/python -m pytest -m typescript tests/almanac_typescript tests/docs/test_receivers.py

test-openid: setup tests/identity_provider/node_modules/.package-lock.json ## signing in to the dashboard, at an OpenID Connect server that is not ours
	@$(BIN)/python -m pytest tests/identity_provider

client-types: setup clients/typescript/node_modules/.package-lock.json ## generate the types of the TypeScript client from the OpenAPI document, and the client for the booking page
	@$(BIN)/python -m tests.almanac_typescript.types
	@$(BIN)/python -m tests.almanac_typescript.booking

bruno: setup ## generate the Bruno collection from the OpenAPI document
	@$(BIN)/python -m tests.bruno.collection

test-browser: browser ## the dashboard in a headless Chromium: pages, keyboard, accessibility, consent
	@$(BIN)/python -m pytest tests/browser -n $(BROWSERS) --dist worksteal

screenshots: browser ## every page of the dashboard at four widths, light and dark, into build/screenshots
	@$(BIN)/python -m pytest tests/browser/screenshots.py
	@echo "See build/screenshots"

pictures: browser ## the pictures of the README and the documentation, from the demo, into docs/pictures
	@$(BIN)/python -m pytest tests/browser/pictures.py

browser: setup tests/browser/node_modules/.package-lock.json
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  command -v apt-get >/dev/null || { echo "Install Chromium and its driver: chromium, chromedriver"; exit 1; }; \
	  echo "Installing chromium and chromium-driver ..."; \
	  apt-get install --yes --quiet --no-install-recommends chromium chromium-driver >/dev/null; }

# The rules of accessibility, only for tests: no part of the service needs npm.
tests/browser/node_modules/.package-lock.json: tests/browser/package-lock.json
	@if command -v npm >/dev/null; then \
	  npm ci --prefix tests/browser --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
	elif test -n "$(CI)"; then \
	  echo "npm is missing, and CI needs it for axe-core"; exit 1; \
	else \
	  echo "Without npm the rules of accessibility are not checked; it comes with Node.js (apt-get install npm)"; \
	fi

# The generator of types and the compiler of TypeScript.
tests/generators/node_modules/.package-lock.json tests/packaging/keda/node_modules/.package-lock.json tests/identity_provider/node_modules/.package-lock.json clients/typescript/node_modules/.package-lock.json: \
%/node_modules/.package-lock.json: %/package-lock.json
	@command -v npm >/dev/null || { echo "Install npm, which comes with Node.js (apt-get install npm)"; exit 1; }
	@npm ci --prefix $* --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null

check: setup ## lint, types, import contracts
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# OSV, not the package index: a mirror of the index may have no vulnerability data, and an audit then finds nothing.
audit: .venv/.audit ## known vulnerabilities of the packages of an installation, from osv.dev
	@$(BIN)/pip-audit --strict --vulnerability-service osv --disable-pip --require-hashes \
	  --progress-spinner off -r requirements/runtime.txt \
	  || { echo "The audit has failed: see its output above, or osv.dev was not reached"; exit 1; }

bench: .venv/.bench ## run the benchmarks; writes docs/engineering/benchmarks.md; ONLY="warm engine" runs parts, QUICK=1 all in little
	@command -v wrk >/dev/null || ! command -v apt-get >/dev/null || { \
	  echo "Installing wrk ..."; \
	  apt-get install --yes --quiet --no-install-recommends wrk >/dev/null 2>&1 || true; }
	@$(BIN)/python -m tests.benchmarks $(ONLY) $(if $(QUICK),--quick)

soak: .venv/.bench ## a whole installation under load, with every answer checked; writes docs/engineering/soak.md; MINUTES=5
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),5)

settings: setup ## write the tables of settings and providers and .env.example again, from the declarations
	@$(BIN)/python -m app.docs_site.settings
	@$(BIN)/python -m app.docs_site.providers

fix: setup ## format the code, and apply the fixes of ruff
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

lock: setup ## resolve the lock files again from pyproject.toml
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements/runtime.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml --extra otel --group dev -c requirements/runtime.txt -o requirements/dev.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml --extra otel --group dev --group bench -c requirements/dev.txt -o requirements/bench.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --group build -o requirements/build.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml --extra otel --group dev --group audit -c requirements/dev.txt -o requirements/audit.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml --extra otel --group dev --group manifests -c requirements/dev.txt -o requirements/manifests.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml --extra otel --group dev --group generators -c requirements/dev.txt -o requirements/generators.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml --extra otel --group dev --group clients -c requirements/dev.txt -o requirements/clients.txt
