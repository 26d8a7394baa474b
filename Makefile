# Every target that runs Python makes its virtual environment first, once: see .ci/venv.
#
#   make templates CLUSTER=examples/production.yaml OUTPUT=/tmp/production
#   make plan CLUSTER=production.yaml
#   make deploy CLUSTER=production.yaml ARGS="--profile production"
#   make test TESTS=tests/cli
#   make soak EXAMPLES=500 SEED=7
#   make PYTHON=python3.12 test

PYTHON ?= python3
CLUSTER ?=
OUTPUT ?= output
ARGS ?=
TESTS ?= tests
TIMING ?=
SAMPLE ?= 100
EXAMPLES ?= 50
ORDERS ?= 50
SEED ?= 1

export PYTHON
# Each worker of pytest, and each Python that a test starts, would compile hundreds of modules anew.
unexport PYTHONDONTWRITEBYTECODE
python := .venv/bin/python
run := $(python) -m
cluster := $(if $(CLUSTER),--cluster '$(CLUSTER)')

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help templates plan deploy delete demo test drills soak boot-test lint audit pythons oldest newest lock docs statuses golden bench mutants matrix clean runtime sandbox development

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

templates: runtime  ## Generate and lint the templates into output/ (CLUSTER=file, OUTPUT=directory)
	@$(run) cfngen templates $(cluster) --output-dir '$(OUTPUT)'

# Exit codes 4 and 5 of `cfngen plan` are answers: there are changes. To make they would be errors.
plan: runtime  ## Show what a deployment would change (CLUSTER=file, ARGS=options)
	@$(run) cfngen plan $(cluster) $(ARGS) || { code=$$?; [ $$code -eq 4 ] || [ $$code -eq 5 ] || exit $$code; }

deploy: runtime  ## Deploy the cluster (CLUSTER=file, ARGS=options)
	@$(run) cfngen deploy $(cluster) $(ARGS)

delete: runtime  ## Delete the cluster and what Kubernetes made for it (CLUSTER=file, ARGS=options)
	@$(run) cfngen delete $(cluster) $(ARGS)

demo: sandbox  ## Deploy, look at and delete the default cluster in an account on this machine; needs no AWS account
	@sh .ci/demo

test: development  ## Run the tests (TESTS=path)
	@$(run) pytest --numprocesses auto --dist worksteal $(TESTS)

drills: development  ## Run the long tests: whole lives of clusters, every command of the pages (TESTS=path)
	@$(run) pytest --numprocesses auto --dist worksteal -m 'drill and not soak' $(TESTS)

soak: development  ## Live lives of clusters by chance, and the rest of the longest drills (EXAMPLES=number, SEED=number, TESTS=path)
	@CFNGEN_SOAK_EXAMPLES='$(EXAMPLES)' CFNGEN_SOAK_SEED='$(SEED)' $(run) pytest --numprocesses auto -m soak $(TESTS)

boot-test: development  ## Boot clusters for real, as containers; needs root on Debian (TESTS=path, TIMING=file for a report)
	@CFNGEN_BOOT_TIMING='$(TIMING)' sh .ci/boot-test $(filter-out tests,$(TESTS))

lint: development  ## Check style, types and the import contract, and that output/ is up to date
	@$(run) ruff check .
	@$(run) ruff format --check .
	@.venv/bin/lint-imports --no-logo
	@$(run) mypy
	@$(run) cfngen templates --defaults --check
	@$(python) .ci/lock --age

audit: development  ## Count what reviewers look for in templates, and run checkov, cloudformation-validate and cdk-nag (ARGS=--write)
	@$(python) .ci/audit/audit.py $(ARGS)

pythons: development  ## Compare what every supported Python of this machine generates, and the boot program under the oldest
	@sh .ci/compatibility pythons

oldest: development  ## Run the commands and golden cases with the lowest versions that setup.cfg allows
	@sh .ci/compatibility oldest

newest: development  ## Run the commands and golden cases with the newest versions that setup.cfg allows, as of now
	@sh .ci/compatibility newest

lock: development  ## Lock the newest versions that setup.cfg allows into requirements/, with hashes
	@$(python) .ci/lock

docs: development  ## Write the generated pages of docs/ again
	@$(run) cfngen.cluster.documents.reference docs/reference
	@$(run) cfngen.cli.display.json_reference docs/reference
	@$(run) cfngen.graph.reference docs
	@$(run) cfngen.permissions.explanations docs/reference
	-@CFNGEN_UPDATE_GOLDEN=1 $(run) pytest tests/test_architecture.py

statuses: development  ## Try every command in every status of the stacks; write what came of it into docs/operate/operations.md
	@CFNGEN_UPDATE_GOLDEN=1 $(run) pytest -m "drill or soak" tests/cli/test_status_walk.py

golden: development  ## Write the golden cases of tests/golden again; look at the difference before committing
	-@CFNGEN_UPDATE_GOLDEN=1 $(run) pytest tests/golden tests/permissions/test_documented_policies.py tests/permissions/test_pod_roles_page.py tests/aws/test_refusals.py
	@CFNGEN_UPDATE_GOLDEN=1 $(run) pytest -m drill tests/rehearse/test_rehearsal_recorded.py -k was_recorded

bench: development  ## Run the benchmarks; they print, nothing is asserted
	@.venv/bin/python benchmarks/commands.py
	@.venv/bin/python benchmarks/growth.py

mutants: development  ## Put small faults into copies of the program; do tests notice? (SAMPLE=100, SEED=1, ARGS=options)
	@.venv/bin/python tests/mutants/run.py --sample '$(SAMPLE)' --seed '$(SEED)' $(ARGS)

matrix: development  ## Lint 2,000 combinations of what a cluster file can say; live the golden cases in 50 orders (SEED=1, ARGS=options, ORDERS=number)
	@.venv/bin/python tests/matrix/matrix_run.py --seed '$(SEED)' $(ARGS)
	@CFNGEN_ORDERS='$(ORDERS)' $(run) pytest --numprocesses auto -m drill tests/aws/test_templates_golden_cases.py tests/aws/test_templates_depends_on.py

clean:  ## Remove the virtual environment and every cache; output/ stays
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist *.egg-info
	find cfngen tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

runtime sandbox development:
	@sh .ci/venv $@
