# One verb a target; each does all the set-up it needs from a fresh clone.
SHELL := /bin/sh
SYSTEM_PATH := $(PATH)
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
INSTALLED := node_modules/.package-lock.json
DIR ?= .flotilla
NODES ?= 3
PORT ?= 1280

.PHONY: quickstart test build lint fmt proto sim chaos soak bench bench-raft clean

quickstart: $(INSTALLED)
	@exec bin/flotilla quickstart --dir $(DIR) --nodes $(NODES) --port $(PORT)

$(INSTALLED): package.json package-lock.json
	@PATH="$(SYSTEM_PATH)" npm ci --loglevel=error --no-progress
	@touch $@

build: $(INSTALLED)
	tsc --noEmit -p tsconfig.json

lint: build
	eslint --max-warnings 0 .
	prettier --check --log-level warn .

fmt: $(INSTALLED)
	prettier --write --log-level warn .

# Unit and simulation first, then real controllers one file at a time.
test: $(INSTALLED)
	@rm -rf .test && mkdir -p .test/tmp
	@export TMPDIR=$(CURDIR)/.test/tmp FLOTILLA_TEST_COUNTS=$(CURDIR)/.test/counts; \
	vitest run --project unit; unit=$$?; \
	vitest run --project process; processes=$$?; \
	awk '{p+=$$1; f+=$$2; s+=$$3} END {print p+0 " passed, " f+0 " failed, " s+0 " skipped"}' .test/counts; \
	exit $$((unit + processes))

# Generated message code is committed; this makes it anew (the compiler is fetched from the npm registry).
proto: $(INSTALLED)
	npm exec --yes --package=@bufbuild/buf@1.75.0 --package=@bufbuild/protoc-gen-es@2.13.0 -- buf generate proto
	cd proto && sha256sum *.proto > gen/SOURCES.sha256

# SEEDS=n FIRST=n runs a range; SEED=n replays one.
sim: $(INSTALLED)
	FLOTILLA_SIM_SEEDS=$(or $(SEEDS),1000) FLOTILLA_SIM_FIRST=$(FIRST) FLOTILLA_SIM_SEED=$(SEED) vitest run --project unit test/raft/simulation.test.ts --testTimeout=0

# Real controllers killed and frozen by chance under writing clients; MINUTES=n SEED=n.
chaos: $(INSTALLED)
	node test/chaos/campaign.ts --minutes $(or $(MINUTES),2) $(if $(SEED),--seed $(SEED))

# Updates at the caps with one controller away: no process may take more memory than its bound; MINUTES=n.
soak: $(INSTALLED)
	node test/chaos/soak.ts --minutes $(or $(MINUTES),30)

bench: $(INSTALLED)
	node bench/http.ts
	node bench/etcd.ts
	node bench/failover.ts
	node bench/log-in-storm.ts
	node bench/apply.ts

bench-raft: $(INSTALLED)
	node bench/raft.ts
	node bench/wal.ts

clean:
	rm -rf node_modules .test .flotilla
