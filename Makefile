# nigh: `make help` lists what can be done. All work is in cargo and scripts/.

# Debian's users do not have the system's programs on their path, and rustup's may be missing on root's.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH):/usr/local/sbin:/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help setup build deb install-psock test test-deb test-kernels check-arm64 test-fresh soak demo bench bench-echo bench-lpm bench-topo bench-oracle bench-lab bench-lab-memory bench-psock bench-probe bench-gate bench-mask fuzz fuzz-long fuzz-minimise audit fmt clean

help: ## this list
	@printf 'nigh: one program for the edge of a network. Targets:\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name text; do printf '%-20s %s\n' "$$name" "$$text"; done

demo: ## the ten-AS internet on this machine, step by step (DEMO_ONCE=1: end after the last step)
	@scripts/setup demo
	@scripts/demo

test: ## everything that CI checks: style, lints, unit, packet and namespace tests, fuzz seeds
	@scripts/setup test
	@scripts/test

test-kernels: ## tables of the eBPF programs, a test of each job and the demo on the kernels of Debian 12 and 13, emulated
	@scripts/setup test
	@scripts/setup kernels
	@scripts/test-kernels

check-arm64: ## compiles everything for arm64 (without linking)
	@scripts/setup arm64
	@scripts/check-arm64

test-fresh: ## `make test` in a new Debian tree below target/ (SUITE=bookworm), where setup installs everything
	@scripts/setup fresh
	@scripts/test-fresh $(SUITE)

soak: ## all tests in their full sizes, and a minute of each fuzz target (JOBS="gate lab": of these jobs)
	@scripts/setup test
	@scripts/setup fuzz
	@scripts/test soak $(JOBS)

build: ## the program, optimized: target/release/nigh
	@scripts/setup build
	cargo build --release -p nigh

deb: ## Debian packages of the program, the C library and the Python client: target/deb
	@scripts/setup deb
	@scripts/deb

test-deb: ## checks the packages in target/deb by lintian, installs and upgrades them in a booted Debian (SUITE=bookworm)
	@scripts/setup deb
	@scripts/setup kernels
	@scripts/test-deb $(SUITE)

install-psock: ## libpsock.so, psock.h, psock.pc and libpsock_preload.so below PREFIX=/usr/local (DESTDIR=)
	@scripts/setup build
	cargo build --release -p psock-c -p psock-preload
	@DESTDIR='$(DESTDIR)' scripts/install-psock '$(or $(PREFIX),/usr/local)' target/release

bench: bench-echo bench-lpm bench-topo bench-oracle bench-lab bench-lab-memory bench-psock bench-probe bench-gate bench-mask ## all benchmarks

bench-echo: ## the responder's: a table, and target/bench/echo.json
	@scripts/setup bench
	@scripts/bench echo

bench-lpm: ## longest-prefix match beside three crates: a table, and target/bench/lpm.json
	@scripts/setup bench
	@scripts/bench lpm

bench-topo: ## snapshots of a large network and shortest paths: a table, and target/bench/topo.json
	@scripts/setup bench
	@scripts/bench topo

bench-oracle: ## the oracle's, in process, in the driver and over sockets: target/bench/oracle.json
	@scripts/setup bench
	@scripts/bench rank
	@scripts/bench xdp
	@scripts/bench oracle

bench-lab: ## the lab's, beside rattan and a chain of namespaces: target/bench/lab.json
	@scripts/setup bench-lab
	@scripts/bench lab

bench-lab-memory: ## memory, build and load time, first paths at a million routers (LAB_NODES=N: and N)
	@scripts/setup bench
	@scripts/bench lab-memory

bench-psock: ## psock beside TCP on each path and MPTCP, encrypted, through the lab: target/bench/psock.json
	@scripts/setup bench
	@scripts/bench psock

bench-probe: ## the stations': timestamps, reflectors, a mesh of a hundred: target/bench/probe.json
	@scripts/setup bench
	@scripts/bench probe

bench-gate: ## the gate's beside forwarding, NFQUEUE with nDPI and Suricata: target/bench/gate.json
	@scripts/setup bench-gate
	@scripts/bench gate

bench-mask: ## the mask's beside traceanon, tcprewrite and pktanon: target/bench/mask.json
	@scripts/setup bench-mask
	@scripts/bench mask

fuzz: ## a minute of each fuzz target (FUZZ_SECONDS=N: another time; CHANGED=COMMIT: what changed since)
	@scripts/setup fuzz
	@scripts/fuzz $(or $(FUZZ_SECONDS),60) $(if $(CHANGED),--changed $(CHANGED))

fuzz-long: ## 10^8 inputs for each fuzz target, goes on where it was interrupted: a table, and target/bench/fuzz.json
	@scripts/setup fuzz
	@scripts/fuzz-long

fuzz-minimise: ## keeps the best of what fuzz targets have learnt in fuzz/seeds
	@scripts/setup fuzz
	@scripts/fuzz-minimise

audit: ## licences, sources and known weaknesses of all dependencies (needs network)
	@scripts/setup audit
	cargo deny check

fmt: ## formats Rust and eBPF C in place
	cargo fmt --all
	find bpf -name '*.[ch]' -print0 | xargs -0 -r clang-format -i

setup: ## installs what all of these need, as far as it is missing
	@scripts/setup test

clean: ## removes everything that was built
	rm -rf target fuzz/target fuzz/corpus fuzz/artifacts
