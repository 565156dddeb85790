# `make help` lists what there is to do.
SHELL := /bin/bash
PYTHON := .venv/bin/python
PLATFORM_COMMAND := PYTHONPATH=deploy/local $(PYTHON) -m localplatform
RUN_TESTS := PYTHONPATH=deploy/local:. $(PYTHON) -m tests.run
VENV := .venv/.made-from-$(firstword $(shell sha256sum requirements.lock))

export BROKERS CONTROLLERS KAFKA_VERSION KAFKA_PORT PLATFORM ARGOCD REGISTRY TAG

.PHONY: help venv prepare up down check format test test-unit test-api test-kafka test-fleet test-images test-argocd test-monitoring test-e2e explore demo demo-plan demo-decommission demo-life demo-fleet demo-gitops screenshots soak bench-reaction bench-operator bench-decommission bench-policy bench-throttle bench-failover bench-takeover bench-makespan bench-planner bench-memory bench-fleet bench-fleet-pods crds docs lock lock-debian image release

help:  ## list the targets
	@sed -nE 's/^([a-z0-9 -]+):[^#]*## */\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "%-17s  %s\n", $$1, $$2 }'

venv: $(VENV)  ## make the virtual environment, .venv, from requirements.lock

$(VENV): requirements.lock
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || python3 -c 'import ensurepip' 2>/dev/null || \
	  { echo 'installing python3-venv' && apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; } || \
	  { echo 'needed: apt-get install python3-venv' >&2; exit 1; }
	@test -x $(PYTHON) || python3 -m venv .venv
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m ensurepip >/dev/null
	@echo 'installing the Python packages'
	@$(PYTHON) -m pip install --quiet --require-hashes --requirement requirements.lock
	@rm -f .venv/.made-from-*
	@touch $@

prepare: $(VENV)  ## install and build what takes long; leave nothing running
	@$(PLATFORM_COMMAND) prepare

up: $(VENV)  ## start the platform: BROKERS=4 KAFKA_VERSION=4.3.1 ARGOCD=1; source .local/env
	@$(PLATFORM_COMMAND) up

down: $(VENV)  ## stop the local platform and leave nothing running
	@$(PLATFORM_COMMAND) down

check: $(VENV)  ## formatter, linter, types, layers, names
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	PYTHONPATH=operator .venv/bin/lint-imports --no-logo
	$(PYTHON) -m tests.names

format: $(VENV)  ## format, and correct what the linter can
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

test: $(VENV)  ## all tests, with how long each part took: 20 minutes, an hour from nothing
	@$(RUN_TESTS) unit api kafka fleet images argocd monitoring e2e

test-unit test-api test-kafka test-fleet test-images test-argocd test-monitoring test-e2e: test-%: $(VENV)  ## a folder
	@$(RUN_TESTS) $*

explore: $(VENV)  ## the unit tests, with many fresh examples for the property tests
	@HYPOTHESIS_PROFILE=explore $(RUN_TESTS) unit

demo: up  ## watch a manifest move replicas, and another one undone because it is deleted
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.demo

demo-plan: BROKERS = 5
demo-plan: up  ## watch a plan drain a broker over two levels of racks, approved by its digest
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.demo_plan

demo-decommission: BROKERS = 6
demo-decommission: up  ## watch a broker emptied, stopped, unregistered and replaced, and no record lost
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.demo_decommission

demo-life: BROKERS = 6
demo-life: up  ## watch a policy fill a new broker, and replace a lost one until it is back
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.demo_life

demo-fleet: BROKERS = 4
demo-fleet: up  ## watch a fleet planned on Spark, and the platform's plan carried out
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.demo_fleet

demo-gitops: ARGOCD = 1
demo-gitops: up  ## watch a real Argo CD carry out commits, show an error, and ask before it cancels
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.demo_gitops

screenshots: BROKERS = 4
screenshots: up  ## write the pictures in docs/, each of what a run on the platform made
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.screenshots

soak: up  ## kill the operator ten times in one reassignment, then watch an idle cluster
	@PYTHONPATH=deploy/local:. $(PYTHON) -m tests.benchmarks.soak

bench-reaction: up  ## how soon a manifest is acted on, and its end seen: median and maximum of 20 runs
	@PYTHONPATH=deploy/local:. $(PYTHON) -m tests.benchmarks.reaction

bench-operator: $(VENV)  ## the operator beside the stock tool, on its own brokers; OPTIONS="large scale=0.1"
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.operator_ $(OPTIONS)

bench-decommission: $(VENV)  ## how soon a broker is planned, and called empty; what that costs
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.decommission $(OPTIONS)

bench-policy: $(VENV)  ## what an idle policy costs, and how soon a trigger has its plan
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.policy $(OPTIONS)

bench-throttle: $(VENV)  ## the rate of a throttled 100 MB move beside its throttle, on brokers of its own
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.throttle

bench-failover: $(VENV)  ## controllers fail 20 times while writes are queued: nothing may be orphaned
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.failover

bench-takeover: $(VENV)  ## seconds until a waiting process writes when the active one ends, ten times each
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.takeover

bench-makespan: up  ## how long the waves of a plan take under a throttle, beside what the plan says
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.makespan

bench-planner: $(VENV)  ## the planner beside Kafka's placer and the bounds; OPTIONS=--growth: more replicas
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.planner $(OPTIONS)
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.waves

bench-memory: $(VENV)  ## memory of operator, planning and snapshot, and with 400 finished resources
	@PYTHONPATH=operator:. $(PYTHON) -m tests.benchmarks.memory
	@PYTHONPATH=operator:. $(PYTHON) -m tests.benchmarks.finished

bench-fleet: $(VENV)  ## a fleet from snapshots to report: seconds and memory, beside a loop without Spark
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.fleet $(OPTIONS)
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.fleet_cores

bench-fleet-pods: $(VENV)  ## the same as a Job on the local platform, with 1, 2 and 4 executors
	@$(PLATFORM_COMMAND) up node
	@PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.benchmarks.fleet_pods $(OPTIONS)

crds: $(VENV)  ## write what comes from the code: crds/, the chart's copy, docs/reference, others
	PYTHONPATH=operator $(PYTHON) -m reassign.api.crd crds charts/kafka-reassign-operator/files/crds
	PYTHONPATH=deploy/local $(PYTHON) -m localplatform.chart_readme
	PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.api.chart_values
	PYTHONPATH=operator:deploy/local:. $(PYTHON) -m tests.unit.argocd_testdata
	PYTHONPATH=deploy/local $(PYTHON) -m localplatform.argocd_config
	PYTHONPATH=operator:deploy/local:. $(PYTHON) docs/made.py

docs: $(VENV)  ## build the pages as a site that opens without a network: site/index.html
	@$(PYTHON) -m sphinx --quiet --nitpicky --fail-on-warning docs site

image: $(VENV)  ## build the operator's image for this machine, and say where its archive is
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.image

release: $(VENV)  ## write a release to dist/, and publish nothing; REGISTRY=ghcr.io/you TAG=v0.1.0
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.release

lock-debian: $(VENV)  ## write deploy/debian.lock, the Debian packages of the images' bases
	@PYTHONPATH=deploy/local $(PYTHON) -m localplatform.debian

lock: $(VENV)  ## write requirements.lock from pyproject.toml
	.venv/bin/uv pip compile pyproject.toml --all-extras --group dev --group docs --generate-hashes --no-annotate --no-header \
	  --python-version 3.11 --quiet --output-file requirements.lock
