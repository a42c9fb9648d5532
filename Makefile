# SPDX-License-Identifier: BSD-2-Clause
# A few targets; the build itself is Meson's. `make help` lists them.
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
ROOM ?=
# 0: never ask a package manager; say what is missing, and stop. scripts/deps.sh
# reads it, for the scripts too that call it.
DEPS ?= 1
export DEPS
# What a goal needs is installed by one call of the package manager.
NEEDS = build
MESONFLAGS ?=
export VERBENA_BUILD = $(abspath $(BUILD))

.PHONY: all build demo check check-all check-room lab lab-guest install uninstall clean help
.PHONY: deps check-deps bench deb bundle

all: build

help:
	@echo 'make                     install what the build needs, build'
	@echo 'make DEPS=0              build; never run apt'
	@echo 'make demo                two hosts, five programs, a table'
	@echo 'make check               tests of every layer, in minutes'
	@echo 'make check-all           all tests (.ci/run does the same)'
	@echo 'make check-room ROOM=ib  the tests of one room, in seconds'
	@echo 'make bench               speed, against other ways: docs/PERFORMANCE.md'
	@echo 'make lab                 the Linux kernel as a peer: docs/LAB.md'
	@echo 'make install PREFIX=$(PREFIX) DESTDIR='
	@echo 'make uninstall PREFIX=$(PREFIX) DESTDIR='
	@echo 'make deb                 packages for this Debian: $(BUILD)-deb'
	@echo 'make bundle              a tar for any image with glibc: $(BUILD)-bundle'
	@echo 'make clean'

deps:
	@scripts/deps.sh $(NEEDS)

check-deps:
	@scripts/deps.sh --check build

$(BUILD)/build.ninja: | deps
	meson setup $(MESONFLAGS) $(BUILD)

build: deps $(BUILD)/build.ninja
	@ninja -C $(BUILD)

demo: NEEDS += demo
demo: deps $(BUILD)/build.ninja
	@ninja -C $(BUILD) installed
	@demo/demo.sh

check:
	@scripts/check.sh --quick

check-all:
	@scripts/check.sh

check-room: build
	@test -n '$(ROOM)' || { echo 'which one? make check-room ROOM=ib'; exit 2; }
	meson test -C $(BUILD) --suite $(ROOM) --print-errorlogs

# TABLE=wire measures one table of them, BENCH_QUICK=1 briefly.
bench: build
	@scripts/deps.sh bench || echo 'bench: some rows will fail for want of these'
	@bench/bench.sh $(TABLE)

lab: build
	@scripts/deps.sh lab
	@lab/lab.sh $(if $(SCRIPT),run '$(SCRIPT)')

# From another terminal: a shell in the guest of the lab that runs.
lab-guest:
	@lab/lab.sh guest

# Neither of these runs apt.
install: check-deps
	@test -f $(BUILD)/build.ninja || meson setup $(MESONFLAGS) $(BUILD)
	meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	ninja -C $(BUILD)
	DESTDIR='$(DESTDIR)' meson install -C $(BUILD) --no-rebuild

uninstall:
	@test -f $(BUILD)/build.ninja || { echo 'uninstall: no $(BUILD), which knows what was installed'; exit 1; }
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@DESTDIR='$(DESTDIR)' scripts/uninstall.py $(BUILD)

deb: NEEDS += deb
deb: deps
	@packaging/deb.sh $(BUILD)-deb

# CROSS=aarch64 SYSROOT=DIRECTORY: for another processor.
bundle: deps
	@packaging/bundle.sh $(BUILD)-bundle $(CROSS) $(SYSROOT)

clean:
	rm -rf $(BUILD) $(BUILD)-*
