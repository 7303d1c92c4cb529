# SPDX-License-Identifier: Apache-2.0
# heaptap: `make help` lists what there is to make.
#
# Nothing here needs a compiler or pkg-config while the file is read: `make demo` and `make check` begin on a machine
# that has neither, and install them.

VERSION := 0.1.0
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib/heaptap
INCDIR  ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
V       ?= 0
SAN     ?=
T       ?=

comma := ,
O     ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(filter-out gcc cc g++ c++,$(notdir $(CC))),-$(notdir $(CC)))
O     := $(O)

# ---- the one list of packages; everything that installs one installs from here
PACKAGES_BUILD := gcc libc6-dev libdw-dev libelf-dev libpfm4-dev libprotobuf-c-dev protobuf-c-compiler \
	protobuf-compiler zlib1g-dev libiberty-dev libpcre2-dev libcurl4-gnutls-dev libinih-dev \
	libmicrohttpd-dev libseccomp-dev
PACKAGES_DEMO  := $(PACKAGES_BUILD) redis-server redis-tools golang-go
PACKAGES_LINT  := $(PACKAGES_BUILD) binutils python3 cppcheck clang-format universal-ctags
PACKAGES_CHECK := $(sort $(PACKAGES_DEMO) $(PACKAGES_LINT)) g++ clang lld libclang-rt-14-dev libcmocka-dev \
	golang-github-google-pprof-dev sqlite3 nodejs util-linux procps spin gdb llvm dwz xz-utils gcc-aarch64-linux-gnu \
	libc6-dev-arm64-cross qemu-user rustc valgrind nginx-light curl musl-tools libjemalloc-dev libgoogle-perftools-dev \
	libmimalloc-dev libcap2-bin heaptrack man-db zsh fish debuginfod libdebuginfod1 python3-h2 \
	python3-protobuf runc chromium firefox-esr
PACKAGES_DEB   := $(PACKAGES_BUILD) build-essential dpkg-dev debhelper lintian fakeroot
PACKAGES_BENCH := $(PACKAGES_BUILD) g++ python3 valgrind heaptrack libgoogle-perftools4 gnuplot-nox redis-server \
	redis-tools sqlite3 nodejs zstd
PACKAGES_LEAKS := $(PACKAGES_BUILD) g++ binutils python3 python3-dev python3-venv cargo rustc nodejs npm openjdk-17-jdk-headless \
	redis-server postgresql

# The lab: what runs virtual machines, and what is in them, each with its own architecture's packages.
PACKAGES_LAB   := qemu-system-x86 qemu-system-arm qemu-utils mmdebstrap arch-test e2fsprogs cpio kmod xz-utils zstd \
	gcc-aarch64-linux-gnu g++-aarch64-linux-gnu
PACKAGES_GUEST := systemd-sysv dbus udev kmod ca-certificates iproute2 strace make nginx postgresql mariadb-server podman crun \
	conmon netavark busybox-static uidmap slirp4netns fuse-overlayfs \
	$(filter-out %arm64-cross %aarch64-linux-gnu qemu-user cppcheck clang-format universal-ctags spin nginx-light chromium firefox-esr,$(PACKAGES_CHECK))
# Unpacked alone: no services but redis, and no compilers but gcc and Go's.
PACKAGES_GUEST_ARM64 := base-files base-passwd bash coreutils dash debianutils diffutils findutils grep gzip hostname libc-bin \
	login mawk mount passwd perl-base sed tar util-linux less bsdutils $(filter-out systemd-sysv dbus udev nginx postgresql \
	mariadb-server podman crun conmon netavark uidmap slirp4netns fuse-overlayfs clang lld llvm libclang-rt-14-dev rustc \
	heaptrack man-db zsh fish debuginfod libdebuginfod1,$(PACKAGES_GUEST))

# ---- how things are compiled
# $(call quiet,CC,what): says what is made, unless V=1 shows the command itself
quiet = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

WARN     := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wpointer-arith -Wno-unused-parameter \
	$(if $(findstring clang,$(CC)),-Wno-unknown-attributes)
CFLAGS   ?= -O2 -g
CSTD     := -std=c11 -D_GNU_SOURCE
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))
# After CFLAGS: the sums of proto/weight.h must have the same bits in the hook and in the sampler.
ALLFLAGS  = $(CSTD) $(WARN) $(CFLAGS) -ffp-contract=off $(WERROR) -MMD -MP -I. -I$(O) -DHEAPTAP_VERSION='"$(VERSION)"' \
	-DHEAPTAP_LIBDIR='"$(LIBDIR)"'
# heaptap reads what hostile programs write: see tests/e2e/trust_hardening.sh. FORTIFY_SOURCE takes optimization, and
# gets in the way of sanitizers; the stack clash option is a warning with some compilers and machines.
has_flag  = $(shell $(CC) -Werror $(1) -S -o /dev/null -x c /dev/null 2>/dev/null && echo $(1))
HARD_CC  := -fPIE -fstack-protector-strong $(call has_flag,-fstack-clash-protection) \
	$(if $(SAN),,$(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARD_LD  := -pie -Wl,-z,relro,-z,now,-z,noexecstack
# libcurl's GnuTLS flavour, which libdebuginfod has, too; in heaptap-push only.
PUSH_LIBS := -Wl,--as-needed -lcurl-gnutls
# Of heaptap-serve: the HTTP server, and the filter of its system calls.
SERVE_LIBS := -Wl,--as-needed -lmicrohttpd -lseccomp
LIBS     := -linih -ldw -lelf -lprotobuf-c -lpcre2-8 -lz -liberty -lm

SAMPLER_SRC := $(sort $(wildcard sampler/*.c sampler/*/*.c))
PPROF_SRC   := $(sort $(wildcard pprof/*/*.c))
PUSH_SRC    := $(sort $(wildcard push/*.c))
PUSH_PROTO  := $(sort $(wildcard push/*.proto))
SERVE_SRC   := $(sort $(wildcard serve/*.c))
PRELOAD_SRC := $(sort $(wildcard preload/*.c))
UNIT_SRC    := $(sort $(wildcard tests/unit/*.c))
FUZZ_SRC    := $(sort $(wildcard tests/fuzz/*.c))
READER_SRC  := $(sort $(wildcard tests/readers/*.c))
TARGET_SRC  := $(sort $(wildcard tests/targets/*.c tests/targets/*.cc))

SAMPLER_OBJ := $(SAMPLER_SRC:%.c=$(O)/%.o)
PPROF_OBJ   := $(PPROF_SRC:%.c=$(O)/%.o) $(O)/pprof/profile.pb-c.o
PUSH_OBJ    := $(PUSH_SRC:%.c=$(O)/%.o) $(PUSH_PROTO:%.proto=$(O)/%.pb-c.o)
SERVE_OBJ   := $(SERVE_SRC:%.c=$(O)/%.o)
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(O)/%.o)
# What of the hook's half the unit tests link: its books, none of what it exports.
HOOK_OBJ    := $(patsubst %,$(O)/tests/%.o,$(filter-out $(addprefix preload/,api attach constructor hooks mmap \
	family next_symbol next_symbol_operators signal hook_table running loader_calls),$(PRELOAD_SRC:%.c=%)))
# What is loaded into processes that run already; attaching knows x86-64 alone.
ATTACH_LIB   = $(if $(filter x86_64%,$(MACHINE)),$(O)/libheaptap-attach.so)
CORE_OBJ    := $(filter-out $(O)/sampler/main.o,$(SAMPLER_OBJ)) $(PPROF_OBJ)
UNIT_BIN     = $(filter-out $(if $(ATTACH_LIB),,$(O)/tests/unit/remote_call),$(UNIT_SRC:%.c=$(O)/%))
FUZZ_BIN    := $(FUZZ_SRC:%.c=$(O)/%)
FUZZ_OBJ    := $(FUZZ_BIN:%=%.o)
READER_BIN  := $(READER_SRC:%.c=$(O)/%) $(patsubst %.go,$(O)/%,$(wildcard tests/readers/*.go))
TARGET_BIN   = $(addprefix $(O)/tests/targets/,$(filter-out $(if $(ATTACH_LIB),,attach_calls),$(notdir $(basename $(TARGET_SRC)))))
BENCH_SRC   := $(sort $(wildcard bench/programs/*.c bench/programs/*.cc))
BENCH_BIN   := $(addprefix $(O)/bench/,$(notdir $(basename $(BENCH_SRC))))

GO := GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS= GOCACHE=$(abspath $(O))/gocache go

# What the compiler compiles for.
MACHINE = $(eval MACHINE := $(or $(shell $(CC) -dumpmachine 2>/dev/null),$(shell uname -m)))$(MACHINE)

# ---- aarch64, cross-compiled, with Debian's arm64 libraries beside the checkout (.ci/tree). For tests: without debug
# information, and without optimization that costs a minute.
PACKAGES_ARM64 := libc6-dev libdw-dev libelf-dev libpfm4-dev libprotobuf-c-dev zlib1g-dev libiberty-dev libpcre2-dev \
	libcurl4-gnutls-dev libinih-dev libmicrohttpd-dev libseccomp-dev libcmocka-dev libstdc++-12-dev \
	libjemalloc-dev libgoogle-perftools-dev libmimalloc-dev
ARM64_O      := $(O)-arm64
# Those that qemu's user mode can run: it has no perf events, no vdso, no memory that a forked child finds empty, /proc
# shows the emulator's own address space, and "/" is the folder of its libraries for whoever walks a path from there.
ARM64_UNIT   := regs call cfi stacks unwind_step signal_frame sample thread table string_pool weight weigh heap \
	heap_view pprof_encode pprof_decode record region walk serve_api serve_broker serve_debug \
	serve_request push_delta push_text
# In `make check` unless a pattern means other tests, or the machine is of that architecture itself.
WITH_ARM64    = $(if $(filter aarch64%,$(MACHINE)),,$(if $(T),$(findstring arm64,$(T)),1))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: growth growth-traces leaks trust all help clean install uninstall deb deb-run demo demo-run check check-run check-engines engines unit unit-bin e2e readers targets fuzz fuzz-bin \
	arm64 arm64-bin arm64-all lab check-lab \
	accuracy accuracy-run bench bench-run bench-bin bench-unwind lint lint-run layers graph graph-run headers cppcheck format \
	format-check

## all: build/heaptap (command line and sampler), build/heaptap-push, build/heaptap-serve, and the libraries in programs:
##      build/libheaptap.so (preloaded) and build/libheaptap-attach.so (for those that run already)
all: $(O)/heaptap $(O)/heaptap-push $(O)/heaptap-serve $(O)/libheaptap.so $(ATTACH_LIB)

## help: this list
help:
	@sed -n 's/^## /  /p' Makefile
	@echo '  options: V=1 (show commands), SAN=address,undefined, CC=clang, O=FOLDER, PREFIX=, DESTDIR=,'
	@echo '           T=PATTERN (only the tests whose name matches), FUZZ_SECONDS=10'

# ---- the products

$(O)/heaptap: $(SAMPLER_OBJ) $(PPROF_OBJ)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(HARD_LD) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/heaptap-push: $(PUSH_OBJ) $(PPROF_OBJ)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(HARD_LD) $(LDFLAGS) -o $@ $^ -lprotobuf-c -lpcre2-8 -lz -lm -linih $(PUSH_LIBS)

# With sampler/linux and sampler/control, as .ci/layers allows.
$(O)/heaptap-serve: $(SERVE_OBJ) $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(HARD_LD) $(LDFLAGS) -o $@ $^ -lprotobuf-c -lpcre2-8 -lz -lm -linih -pthread $(SERVE_LIBS)

# The half that lives in other people's processes: libc only, nothing exported but the map, no lazy binding
# surprises (-z now), and never a sanitizer runtime (the sanitizer builds test the sampler's side).
PRELOAD_FLAGS  = -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt -fno-stack-protector -fno-builtin \
	$(PRELOAD_$(firstword $(subst -, ,$(MACHINE))))
# Returns are checked by the processor where it can: shadow stacks; signed return addresses and landing pads.
PRELOAD_x86_64  := -fcf-protection=return
PRELOAD_aarch64 := -mbranch-protection=standard
PRELOAD_LINK   = -shared $(LDFLAGS) -Wl,-soname,$(@F) -Wl,-Bsymbolic-functions \
	-Wl,-z,defs,-z,now,-z,relro,-z,noexecstack -Wl,--hash-style=gnu
ONLY_PRELOADED := $(patsubst %,$(O)/preload/%.o,constructor family redirect)
ONLY_ATTACHED  := $(patsubst %,$(O)/preload/%.o,running hook_table import protection loader_calls)
$(O)/libheaptap.so: $(filter-out $(ONLY_ATTACHED),$(PRELOAD_OBJ)) preload/preload.map
	$(call quiet,LD,$@)$(CC) $(PRELOAD_LINK) -Wl,--version-script=preload/preload.map -Wl,-z,nodlopen -o $@ $(filter %.o,$^)

# The same objects again, on x86-64, for processes that run already: loaded by dlopen, never unloaded, without debug
# information since every such process holds a copy.
$(O)/libheaptap-attach.so: $(filter-out $(ONLY_PRELOADED),$(PRELOAD_OBJ)) preload/attach.map
	$(call quiet,LD,$@)$(CC) $(PRELOAD_LINK) -Wl,--version-script=preload/attach.map -Wl,-z,nodelete,-s -o $@ $(filter %.o,$^)

$(O)/preload/%.o: preload/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALLFLAGS) $(PRELOAD_FLAGS) -c -o $@ $<

# ---- the generated codec

$(O)/pprof/profile.pb-c.c $(O)/pprof/profile.pb-c.h &: proto/profile.proto
	@mkdir -p $(O)/pprof
	$(call quiet,PROTOC,$<)protoc-c --proto_path=proto --c_out=$(O)/pprof $(notdir $<)

# One run makes both files; the header's rule has nothing left to do.
$(O)/push/%.pb-c.c: push/%.proto
	@mkdir -p $(O)/push
	$(call quiet,PROTOC,$<)protoc-c --proto_path=. --c_out=$(O) $<
$(O)/push/%.pb-c.h: $(O)/push/%.pb-c.c ;

%.pb-c.o: %.pb-c.c
	$(call quiet,CC,$<)$(CC) $(CSTD) $(CFLAGS) $(HARD_CC) $(SANFLAGS) -I$(O) -c -o $@ $<

# ---- everything else that is C

$(PUSH_SRC:%.c=$(O)/%.o): | $(PUSH_PROTO:%.proto=$(O)/%.pb-c.h)

$(O)/%.o: %.c | $(O)/pprof/profile.pb-c.h
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALLFLAGS) $(HARD_CC) $(SANFLAGS) -c -o $@ $<

# What .incbin reads -MMD does not see.
PAGE_FILES := $(sort $(wildcard pprof/page/*.html pprof/page/*.css pprof/page/*.js pprof/page/*.svg))
$(O)/pprof/page/page.o: $(PAGE_FILES)
$(O)/serve/api_openapi.o: serve/openapi.json

# All but main, as an archive: a test links what it uses.
$(O)/core.a: $(CORE_OBJ)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

# Of heaptap-push, likewise.
$(O)/push.a: $(filter-out $(O)/push/main.o,$(PUSH_OBJ)) $(PPROF_OBJ)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

# Of heaptap-serve.
$(O)/serve.a: $(filter-out $(O)/serve/main.o,$(SERVE_OBJ))
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

$(O)/tests/preload/%.o: preload/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$< for tests)$(CC) $(ALLFLAGS) $(SANFLAGS) -c -o $@ $<

$(O)/tests/hook.a: $(HOOK_OBJ)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

# The programs have functions of the same name: a test is one program's.
$(O)/tests/unit/push_%: $(O)/tests/unit/push_%.o $(O)/push.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS) $(PUSH_LIBS)

$(O)/tests/unit/serve_%: $(O)/tests/unit/serve_%.o $(O)/serve.a $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS) -pthread $(SERVE_LIBS)

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/tests/hook.a $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

# The reference of bench-unwind, on stacks of both architectures.
$(O)/tests/unit/stacks: $(O)/bench/unwind_dwfl.o

$(O)/tests/fuzz/push_%: $(O)/tests/fuzz/push_%.o $(O)/push.a
	$(call quiet,LD,$@)$(CC) $(subst fuzzer-no-link,fuzzer,$(SANFLAGS)) $(LDFLAGS) -o $@ $^ $(LIBS) $(PUSH_LIBS)

$(O)/tests/fuzz/serve_%: $(O)/tests/fuzz/serve_%.o $(O)/serve.a $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(subst fuzzer-no-link,fuzzer,$(SANFLAGS)) $(LDFLAGS) -o $@ $^ $(LIBS) -pthread $(SERVE_LIBS)

$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(subst fuzzer-no-link,fuzzer,$(SANFLAGS)) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/tests/readers/%: $(O)/tests/readers/%.o $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/tests/readers/%: tests/readers/%.go
	@mkdir -p $(@D)
	$(call quiet,GO,$<)$(GO) build -o $@ $<

# Programs to be profiled: built as users build theirs. A line `/* build: FLAGS */` in the source adds flags of its own.
TARGET_FLAGS = -O2 -g -pthread -I. $$(sed -n 's,^/\* build: \(.*\) \*/$$,\1,p' $<)
$(O)/tests/targets/%: tests/targets/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) -std=gnu11 -o $@ $< $(TARGET_FLAGS) -MMD -MP -MF $@.d

$(O)/tests/targets/%: tests/targets/%.cc
	@mkdir -p $(@D)
	$(call quiet,CXX,$<)$(CXX) -std=c++17 -o $@ $< $(TARGET_FLAGS) -MMD -MP -MF $@.d

# Programs to be measured, built alike.
$(O)/bench/%: bench/programs/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) -std=gnu11 -o $@ $< $(TARGET_FLAGS) -MMD -MP -MF $@.d

$(O)/bench/%: bench/programs/%.cc
	@mkdir -p $(@D)
	$(call quiet,CXX,$<)$(CXX) -std=c++17 -o $@ $< $(TARGET_FLAGS) -MMD -MP -MF $@.d

-include $(shell find $(O) -path $(O)/deb -prune -o -type f -name '*.d' -print 2>/dev/null)

# ---- what a user runs

## demo: install what is missing, record a real redis-server under load, show its heap
demo:
	@.ci/packages $(PACKAGES_DEMO)
	@$(MAKE) --no-print-directory demo-run

demo-run: all
	@.ci/demo $(O)

## check: install what is missing, then unit and end-to-end tests; the last line counts them
check:
	@.ci/packages $(PACKAGES_CHECK)
	@$(MAKE) --no-print-directory check-run

# The fuzzers run by clang alone, but must compile. Where Debian's arm64 packages cannot be had, the tests that need
# them are skipped; what does not build fails.
check-run: all unit-bin readers targets $(FUZZ_OBJ)
	@: >$(O)/arm64.tree$(if $(WITH_ARM64),; .ci/tree arm64 $(PACKAGES_ARM64) >$(O)/arm64.tree || :)
	@[ ! -s $(O)/arm64.tree ] || $(MAKE) --no-print-directory arm64-bin ARM64_TREE=$$(cat $(O)/arm64.tree)
	@# No MAKE in this line: programs under test must not get the descriptors of make's jobs.
	@HEAPTAP_ARM64=$$(cat $(O)/arm64.tree) HEAPTAP_ARM64_UNIT='$(if $(WITH_ARM64),$(ARM64_UNIT))' tests/run $(O) all '$(T)'

## unit: the unit tests alone (also with SAN=...)
unit: all unit-bin readers
	@tests/run $(O) unit '$(T)'

## e2e: the end-to-end tests alone
e2e: all readers targets
	@tests/run $(O) e2e '$(T)'

# Outside of the tree, so that `make clean` and other checkouts leave them alone.
ENGINES = $(shell .ci/engines --path)

## engines: the real Pyroscope and Parca, for check-engines (some minutes, once; needs Go's module proxy)
engines:
	@.ci/packages golang-go
	@.ci/engines

## check-engines: the tests that send profiles to them; skipped where they could not be built
check-engines: all readers targets engines
	@HEAPTAP_ENGINES=$(ENGINES) tests/run $(O) e2e engines

## arm64: heaptap and its library for aarch64, cross-compiled, and the unit tests that qemu-aarch64 can run
arm64:
	@.ci/packages $(PACKAGES_CHECK)
	@tree=$$(.ci/tree arm64 $(PACKAGES_ARM64)) && $(MAKE) --no-print-directory arm64-bin ARM64_TREE=$$tree && \
	HEAPTAP_ARM64=$$tree HEAPTAP_ARM64_UNIT='$(ARM64_UNIT)' tests/run $(O) arm64 '$(T)'

arm64-bin:
	@$(MAKE) --no-print-directory O=$(ARM64_O) CFLAGS=-O0 SAN= CC="aarch64-linux-gnu-gcc --sysroot=$(ARM64_TREE)" \
		AR=aarch64-linux-gnu-ar arm64-all

arm64-all: $(O)/heaptap $(O)/heaptap-push $(O)/heaptap-serve $(O)/libheaptap.so $(ARM64_UNIT:%=$(O)/tests/unit/%)

# Other kernels and machines, in virtual machines (tests/lab/guests.sh lists them).
GUEST ?=
# Without a pattern: what meets the kernel, in three minutes a guest.
LAB_T := $(if $(T),$(T),^unit/(features|event_attr|regs|signal_frame|call)/|^e2e/(truth/exact|units/|capture_backends/(which_and_why|uprobe_disabled$$)|doctor/a_bare_line))

## lab: builds the virtual machines for check-lab, outside of the tree, from Debian's packages (GUEST=PATTERN)
lab:
	@.ci/packages $(PACKAGES_LAB)
	@LAB_PACKAGES_amd64='$(PACKAGES_GUEST)' LAB_PACKAGES_arm64='$(PACKAGES_GUEST_ARM64)' tests/lab/build '$(or $(GUEST),.*)'

## check-lab: boots each, runs tests there, prints a table (GUEST=PATTERN, host is this machine; T=PATTERN)
check-lab: all unit-bin readers targets lab
	@! bash -c '. tests/lab/guests.sh; guest_names "$$0"' '$(or $(GUEST),.*)' | grep -q '^arm64' || { \
		tree=$$(.ci/tree arm64 $(PACKAGES_ARM64)) && GOARCH=arm64 CGO_ENABLED=0 $(MAKE) --no-print-directory SAN= \
		O=$(O)-lab-arm64 CC="aarch64-linux-gnu-gcc --sysroot=$$tree" CXX="aarch64-linux-gnu-g++ --sysroot=$$tree" \
		AR=aarch64-linux-gnu-ar all unit-bin readers targets; }
	@tests/lab/check '$(or $(GUEST),.*)' '$(LAB_T)' $(O)

unit-bin: $(UNIT_BIN)
readers: $(READER_BIN)
targets: $(TARGET_BIN)

FUZZ_SECONDS ?= 10
## fuzz: build every fuzzer with clang and run each for FUZZ_SECONDS from its corpus
fuzz:
	@.ci/packages $(PACKAGES_BUILD) clang libclang-rt-14-dev
	@$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link,address,undefined O=build-fuzz fuzz-bin
	@tests/run build-fuzz fuzz '$(T)' $(FUZZ_SECONDS)

fuzz-bin: $(FUZZ_BIN)

## accuracy: programs that know their own truth, recorded again and again: bias, intervals, losses (ACCURACY_RUNS=40)
accuracy:
	@.ci/packages $(PACKAGES_BENCH)
	@$(MAKE) --no-print-directory accuracy-run

accuracy-run: all bench-bin
	@/usr/bin/python3 -B bench/accuracy.py $(abspath $(O))
	@/usr/bin/python3 -B bench/crosscheck.py $(abspath $(O))

## bench: what it costs, beside its peers, and how that grows: build/bench-results (BENCH_QUICK=1, BENCH_ONLY=PATTERN)
bench:
	@.ci/packages $(PACKAGES_BENCH)
	@$(MAKE) --no-print-directory bench-run

bench-run: all bench-bin
	@/usr/bin/python3 -B bench/bench.py $(abspath $(O)) $(O)/bench-results

bench-bin: $(BENCH_BIN) $(O)/bench/attach_cycles

## growth: how often growth is found where there is none, and how soon where there is some (docs/design/growth.md)
growth: $(O)/bench/growth
	@$< $(GROWTH_RECORDINGS)

## growth-traces: the same in real programs, all of whose allocations are written down for GROWTH_SECONDS, then sampled
## again and again (GROWTH_RECORDINGS=1000)
growth-traces: $(O)/bench/growth_replay $(O)/bench/growth_log.so
	@.ci/packages $(PACKAGES_BENCH)
	@[ -d $(O)/growth-traces ] || /usr/bin/python3 -B bench/growth_traces.py $(O) $(O)/growth-traces $(GROWTH_SECONDS)
	@for trace in cache churn lists cycles sqlite; do \
		$< $(O)/growth-traces/$$trace $(GROWTH_RECORDINGS) 512 5 || exit 1; done

GROWTH_RECORDINGS ?= 1000
GROWTH_SECONDS ?= 240
$(O)/bench/growth_replay: $(O)/bench/growth_trace.o
$(O)/bench/growth $(O)/bench/growth_replay: $(O)/bench/%: $(O)/bench/%.o $(O)/bench/chance.o $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(O)/bench/growth_log.so: bench/growth_log.c bench/growth_log.h
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(CSTD) $(WARN) -O2 -fPIC -shared -I. -o $@ $< -lgcc_s

## leaks: services that leak, in seven languages: what heaptap answers, and when (T=PATTERN, LEAKS_AT_ONCE=4)
leaks: all
	@.ci/packages $(PACKAGES_LEAKS)
	@/usr/bin/python3 -B bench/leaks.py $(O) '$(T)' $(LEAKS_AT_ONCE)

LEAKS_AT_ONCE ?= 1

# Attaches by the sampler's own functions.
$(O)/bench/attach_cycles: $(O)/bench/attach_cycles.o $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

BENCH_UNWIND_OBJ := $(addprefix $(O)/bench/,unwind.o unwind_record.o unwind_dwfl.o unwind_cold.o)
$(O)/bench/unwind: $(BENCH_UNWIND_OBJ) $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

## bench-unwind: the unwinder on real programs, beside libdwfl: agreement, completeness, speed, memory
bench-unwind: $(O)/bench/unwind
	$<

## lint: install what is missing, then folder rules, headers that stand alone, layout of the sources, cppcheck
lint:
	@.ci/packages $(PACKAGES_LINT)
	@$(MAKE) --no-print-directory lint-run

lint-run: layers headers format-check trust cppcheck

## trust: docs/design/trust.md names whatever is taken from others
trust:
	@.ci/trust

# What is C, and ours.
FORMATTED = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cc')

## format: lay the sources out as .clang-format says (it does not rewrap comments: 110 columns are yours to keep)
format:
	@clang-format -i $(FORMATTED)

format-check:
	@clang-format --dry-run --Werror $(FORMATTED)
	@for source in $(FORMATTED) $(PAGE_FILES); do case $$source in pprof/page/*) tab=4 ;; *) tab=8 ;; esac; \
		expand -t $$tab $$source | grep -nE '.{111}' | sed "s,^,$$source:,"; done | grep . && \
		{ echo 'format: the lines above are longer than 110 columns' >&2; exit 1; } || :

## layers: what each folder may need, by includes and by the symbols of the objects (rules: .ci/layers)
layers: all
	@.ci/layers $(O)

## graph: units, floors, circles and folders of the sources, and the longest functions
graph:
	@.ci/packages $(PACKAGES_LINT)
	@$(MAKE) --no-print-directory graph-run

graph-run: all
	@.ci/layers $(O) --graph

headers: | $(O)/pprof/profile.pb-c.h $(PUSH_PROTO:%.proto=$(O)/%.pb-c.h)
	@for header in $(sort $(wildcard proto/*.h preload/*.h pprof/*/*.h push/*.h serve/*.h sampler/*/*.h)); do \
		$(CC) $(CSTD) $(WARN) -I. -I$(O) -fsyntax-only -x c $$header 2>$(O)/header.log || \
			{ echo "headers: $$header does not stand alone" >&2; cat $(O)/header.log >&2; exit 1; }; \
	done

cppcheck: | $(PUSH_PROTO:%.proto=$(O)/%.pb-c.h)
	$(call quiet,LINT,cppcheck)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j2 -D_GNU_SOURCE \
		-DHEAPTAP_VERSION='""' -DHEAPTAP_LIBDIR='""' -D__x86_64__=1 -I. --enable=warning,portability,performance \
		--suppress=missingIncludeSystem --suppress=identicalInnerCondition \
		--suppress=shiftTooManyBitsSigned sampler pprof preload proto push serve

# ---- what `make install` makes from the tables of commands and options
DOCS := $(O)/heaptap.1 $(O)/heaptap.bash $(O)/_heaptap $(O)/heaptap.fish

$(O)/heaptap.1: sampler/cli/heaptap.1.in $(O)/heaptap
	$(call quiet,MAN,$@)$(O)/heaptap completion man <$< >$@
$(O)/heaptap.bash: $(O)/heaptap
	$(call quiet,BASH,$@)$(O)/heaptap completion bash >$@
$(O)/_heaptap: $(O)/heaptap
	$(call quiet,ZSH,$@)$(O)/heaptap completion zsh >$@
$(O)/heaptap.fish: $(O)/heaptap
	$(call quiet,FISH,$@)$(O)/heaptap completion fish >$@

## install: heaptap to PREFIX/bin, its library to PREFIX/lib/heaptap, manual page, completions (DESTDIR is honoured)
install: all $(DOCS)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	install -m 755 $(O)/heaptap $(DESTDIR)$(BINDIR)/heaptap
	install -m 755 $(O)/libheaptap.so $(DESTDIR)$(LIBDIR)/libheaptap.so
	$(if $(ATTACH_LIB),install -m 755 $(ATTACH_LIB) $(DESTDIR)$(LIBDIR)/libheaptap-attach.so)
	install -m 755 $(O)/heaptap-push $(DESTDIR)$(LIBDIR)/heaptap-push
	install -m 755 $(O)/heaptap-serve $(DESTDIR)$(LIBDIR)/heaptap-serve
	install -d $(DESTDIR)$(INCDIR)
	install -m 644 proto/heaptap.h $(DESTDIR)$(INCDIR)/heaptap.h
	install -m 644 $(O)/heaptap.1 $(DESTDIR)$(MANDIR)/man1/heaptap.1
	install -m 644 $(O)/heaptap.bash $(DESTDIR)$(BASHDIR)/heaptap
	install -m 644 $(O)/_heaptap $(DESTDIR)$(ZSHDIR)/_heaptap
	install -m 644 $(O)/heaptap.fish $(DESTDIR)$(FISHDIR)/heaptap.fish

# A copy, so that what debhelper leaves is not in the tree, and what is not committed is not in the packages.
DEB := $(abspath $(O))/deb

## deb: Debian packages in build/deb: heaptap, heaptap-daemon, libheaptap-preload; install what is missing, lintian
deb:
	@.ci/packages $(PACKAGES_DEB)
	@$(MAKE) --no-print-directory deb-run

deb-run:
	@[ "$$(dpkg-parsechangelog -S Version)" = $(VERSION) ] || { echo 'deb: debian/changelog is of another version' >&2; exit 1; }
	rm -rf $(DEB)
	install -d $(DEB)/heaptap
	git ls-files -z --cached --others --exclude-standard | tar --null -c -T - | tar -x -C $(DEB)/heaptap
	cd $(DEB)/heaptap && dpkg-buildpackage --no-sign --build=binary $(if $(filter 1,$(V)),,>$(DEB)/build.log 2>&1) || \
		{ tail -n 40 $(DEB)/build.log >&2; exit 1; }
	rm -rf $(DEB)/heaptap
	lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs $(DEB)/*.changes
	@ls $(DEB)/*.deb

## uninstall: the reverse
uninstall:
	rm -f $(DESTDIR)$(BINDIR)/heaptap $(DESTDIR)$(LIBDIR)/libheaptap.so $(DESTDIR)$(LIBDIR)/libheaptap-attach.so \
		$(DESTDIR)$(LIBDIR)/heaptap-push $(DESTDIR)$(LIBDIR)/heaptap-serve $(DESTDIR)$(MANDIR)/man1/heaptap.1 \
		$(DESTDIR)$(INCDIR)/heaptap.h \
		$(DESTDIR)$(BASHDIR)/heaptap $(DESTDIR)$(ZSHDIR)/_heaptap $(DESTDIR)$(FISHDIR)/heaptap.fish
	-rmdir $(DESTDIR)$(LIBDIR)

## clean: remove every build folder
clean:
	rm -rf build build-*
