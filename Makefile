# perfci: one environment in .venv, everything else runs in it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: demo test test-all lint lock serve clean help system chromium

VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(VENV)/bin
# A file's tests share what is costly to make, so that they stay in one process.
PYTEST := $(BIN)/pytest -n auto --dist loadfile
IS_SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c '$(IS_SUITABLE)' 2>/dev/null && echo "$$python" && break; done)
SERVE ?= 1

# Install Debian packages, or say in one line how to.
define INSTALL
install_packages() {
	local as_root=()
	if ! command -v apt-get >/dev/null; then
		echo "perfci needs $$*: install them with this system's package manager" >&2
		return 1
	fi
	[ "$$(id -u)" = 0 ] || as_root=(sudo -n)
	if ! "$${as_root[@]}" true 2>/dev/null; then
		echo "perfci needs $$*; run: sudo apt-get install -y $$*" >&2
		return 1
	fi
	"$${as_root[@]}" apt-get update -q &&
		"$${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y --no-install-recommends "$$@"
}
endef

demo: $(STAMP) ## run every kernel here, show the table, serve the dashboard (SERVE=0: do not)
	$(BIN)/perfci doctor
	$(BIN)/perfci run
	if [ "$(SERVE)" != 0 ]; then $(BIN)/perfci serve; fi

test: lint ## linters, types and the quick tests
	$(PYTEST) -m 'not long'

test-all: $(STAMP) chromium ## every test, the long ones and those in a browser too
	$(PYTEST)

lint: $(STAMP) ## linters, of workflows too, and types alone
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/actionlint
	$(BIN)/zizmor --offline --no-progress --quiet .

lock: $(STAMP) ## write what is installed now into constraints.txt
	{
		echo '# What perfci is tested with, on Python 3.11 to 3.13; written by `make lock`.'
		$(BIN)/pip freeze --exclude-editable --exclude perfci --exclude pip --exclude setuptools \
			--exclude wheel | sed -E 's/^(torch==[^+]*)\+.*/\1/'
	} > constraints.txt

serve: $(STAMP) ## serve the dashboard
	$(BIN)/perfci serve

clean: ## remove the environment and all caches; what was measured (.perfci) stays
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

help: ## show the targets
	@grep -hE '^[a-z-]+:.* ## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.* ## /  \1\t/' | expand -t 14

# A stamp, so that an installation that was interrupted is taken up again.
$(STAMP): constraints.txt pyproject.toml | system
	@if ! "$(PYTHON)" -c '$(IS_SUITABLE)' 2>/dev/null; then
		echo "perfci needs Python 3.11, 3.12 or 3.13, which '$(PYTHON)' is not;" \
			"name one: make PYTHON=/path/to/python3.12" >&2
		exit 1
	fi
	[ -x $(BIN)/pip ] || "$(PYTHON)" -m venv --clear $(VENV)
	$(BIN)/pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

system:
	@$(INSTALL)
	missing=()
	command -v git >/dev/null || missing+=(git)
	command -v g++ >/dev/null || missing+=(g++)
	if [ -z "$(PYTHON)" ]; then
		missing+=(python3 python3-venv python3-dev)
	elif [ ! -x $(BIN)/pip ] && "$(PYTHON)" -c '$(IS_SUITABLE)' 2>/dev/null; then
		name="python$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
		"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || missing+=("$$name-venv")
		headers=$$("$(PYTHON)" -c 'import sysconfig; print(sysconfig.get_path("include"))')
		[ -f "$$headers/Python.h" ] || missing+=("$$name-dev")
	fi
	[ $${#missing[@]} = 0 ] || install_packages "$${missing[@]}"

chromium:
	@$(INSTALL)
	if ! command -v chromium >/dev/null; then
		install_packages chromium || echo "no Chromium: the tests that need it are skipped" >&2
	fi
