# Freshet: build, try out, test.
#
#   make build    bin/freshet
#   make demo     a throwaway MariaDB and PostgreSQL, direct and through Freshet side by side
#   make test     everything, with real servers (installs what is missing)
#   make check    build, vet, lint and the quick tests: what to run before a commit
#   make bench    every benchmark once and short, on every kind of server (some five minutes)
#   make witness  sysbench, pgbench and TPC-C through Freshet, in full
#   make oracle   a million cached answers checked against four servers, after random writes
#   make histories  concurrent sessions under faults, recorded on four servers and checked for every level's promise
#   make lint | fmt | clean | deps

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

CACHE := $(or $(FRESHET_CACHE),$(HOME)/.cache/freshet)
GO ?= go

# gnet's trimming tags stay off. poll_opt keeps a connection's address in the kernel only: one that another connection's handler closes
# (EventLoop.Close, a failed Write) while its own event waits in the same batch is used after it was collected, a crash seen here. gc_opt
# walks a table of 65,536 slots at every close: 190 us more for each connection, measured.
TAGS :=
GOTEST := $(GO) test -tags '$(TAGS)'

GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/tools/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint
GO_TPC_VERSION := v1.0.12
GO_TPC := $(CACHE)/tools/go-tpc-$(GO_TPC_VERSION)/go-tpc

# Read once when make begins, so that `make test` can tell where its time went.
BEGAN := $(shell date +%s)

.PHONY: build vet demo test check bench witness oracle histories lint fmt clean deps setup packages sid

build:
	$(GO) build -tags '$(TAGS)' -trimpath -o bin/freshet ./cmd/freshet

# After the build, whose C parser it would else compile a second time at the same time.
vet: build
	$(GO) vet -tags '$(TAGS)' ./...

packages:
	bench/upstream/install.sh packages

# After the packages: debootstrap is one of them, and only one apt may run at a time.
sid: packages
	bench/upstream/install.sh sid

deps: sid $(GO_TPC)

# What `make test` needs, side by side: the packages and the sid folder wait for the network while the compilers have the cores. Without a
# C compiler the build waits for the packages, which bring one.
setup: deps build vet
ifneq ($(filter setup,$(MAKECMDGOALS)),)
build: $(if $(shell command -v gcc),,packages)
endif

demo: deps build
	bin/freshet demo

# The servers that could not be had are counted over all packages and said at the end, where they are seen; then where the time went.
test:
	@$(MAKE) --no-print-directory -j3 setup
	@ready=$$(date +%s); skips=$$(mktemp); said=$$(mktemp); trap 'rm -f "$$skips" "$$said"' EXIT; status=0; \
	FRESHET_SKIPS=$$skips FRESHET_BIN=$(CURDIR)/bin/freshet FRESHET_GO_TPC=$(GO_TPC) $(GOTEST) -timeout 40m -parallel 4 ./... 2>&1 | tee "$$said" || status=$$?; \
	if [ -s "$$skips" ]; then \
		echo; echo "=== $$(wc -l <"$$skips") TESTS SKIPPED FOR WANT OF A SERVER ==="; \
		cut -d' ' -f1 "$$skips" | sort | uniq -c; \
	else echo "=== no server was missing ==="; fi; \
	slowest=$$(awk '/^(ok|FAIL)[ \t]/ && $$3 ~ /^[0-9.]+s$$/ {print $$3 + 0, $$2}' "$$said" | sort -rn | sed -n '1,5s/\(.*\) \(.*\)/ \2 \1/p' | paste -sd,); \
	echo "=== set-up $$((ready - $(BEGAN))) s, tests $$(($$(date +%s) - ready)) s; the slowest packages, in seconds:$$slowest ==="; \
	exit $$status

check: build lint vet
	$(GOTEST) -short -timeout 110s ./...

bench: deps build
	bin/freshet bench all

witness: deps build
	FRESHET_BIN=$(CURDIR)/bin/freshet FRESHET_GO_TPC=$(GO_TPC) FRESHET_WITNESS=full $(GOTEST) -count=1 -timeout 60m -v ./bench/witness/

# ORACLE_FLAGS takes more flags, such as --seed.
oracle: deps build
	bin/freshet oracle --dialect all --checks 1000000 $(ORACLE_FLAGS)
	bin/freshet oracle --dialect all --checks 200000 --linearizable $(ORACLE_FLAGS)
	FRESHET_BIN=$(CURDIR)/bin/freshet FRESHET_ORACLE=full $(GOTEST) -count=1 -timeout 40m -v -run TestFindsFaults ./bench/oracle/

# Two minutes for each server and level, two at a time. FRESHET_HISTORY_SEED and FRESHET_HISTORY_FOR choose other faults, or longer.
histories: deps build
	FRESHET_BIN=$(CURDIR)/bin/freshet FRESHET_HISTORY=full $(GOTEST) -count=1 -timeout 60m -parallel 2 -v -run 'TestHistories|TestFindsFaults' ./bench/history/

lint: $(GOLANGCI)
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt'd, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(GOLANGCI) run --build-tags '$(TAGS)' ./...

$(GOLANGCI):
	@mkdir -p $(@D)
	GOBIN=$(@D) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

$(GO_TPC):
	@mkdir -p $(@D)
	CGO_ENABLED=0 GOBIN=$(@D) $(GO) install github.com/pingcap/go-tpc/cmd/go-tpc@$(GO_TPC_VERSION)

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf bin
