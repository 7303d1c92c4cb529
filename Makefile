# SPDX-License-Identifier: Apache-2.0
# heaptap: `make help` lists what there is to make. Here are the products; the rest stands beside what it makes or in a file
# of its own: packages.mk, install.mk, preload/preload.mk, tests/tests.mk, tests/lab/lab.mk, bench/bench.mk.
#
# Nothing here needs a compiler or pkg-config while the file is read: `make demo` and `make check` begin on a machine
# that has neither, and install them.

VERSION := 0.1.0
V       ?= 0
SAN     ?=
T       ?=

comma := ,
O     ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(filter-out gcc cc g++ c++,$(notdir $(CC))),-$(notdir $(CC)))
O     := $(O)

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all programs help demo demo-run clean

## all: build/heaptap (command line and sampler), build/heaptap-push, build/heaptap-serve, the libraries in programs
##      (build/libheaptap.so, preloaded, and build/libheaptap-attach.so, for those that run already), and the manual pages
all: programs docs

include packages.mk

# ---- how things are compiled
# $(call quiet,CC,what): says what is made, unless V=1 shows the command itself
quiet = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

WARN     := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wpointer-arith -Wvla -Wformat=2 \
	-Wno-unused-parameter \
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
# $(call libraries,MODULES,NAMES): what pkg-config says of the modules, or NAMES where it knows them not (a cross build sets
# PKG_CONFIG=false)
PKG_CONFIG ?= pkg-config
libraries  = $(or $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null),$(2))
LIBS       = $(eval LIBS := $$(call libraries,inih libdw libelf libprotobuf-c libpcre2-8 zlib libzstd,-linih -ldw -lelf -lprotobuf-c \
	-lpcre2-8 -lz -lzstd) -liberty -lm)$(LIBS)
PPROF_LIBS = $(eval PPROF_LIBS := $$(call libraries,inih libprotobuf-c libpcre2-8 zlib,-linih -lprotobuf-c -lpcre2-8 -lz) \
	-lm)$(PPROF_LIBS)
# libcurl's GnuTLS flavour, which libdebuginfod has, too (pkg-config names libcurl without its flavour); in heaptap-push only.
PUSH_LIBS := -Wl,--as-needed -lcurl-gnutls
# Of heaptap-serve: the HTTP server, and the filter of its system calls.
SERVE_LIBS = $(eval SERVE_LIBS := -Wl,--as-needed $$(call libraries,libmicrohttpd libseccomp,-lmicrohttpd \
	-lseccomp))$(SERVE_LIBS)

SAMPLER_SRC := $(sort $(wildcard sampler/*.c sampler/*/*.c sampler/*/*/*.c))
PPROF_SRC   := $(sort $(wildcard pprof/*/*.c))
PUSH_SRC    := $(sort $(wildcard push/*.c))
PUSH_PROTO  := $(sort $(wildcard push/*.proto))
SERVE_SRC   := $(sort $(wildcard serve/*.c))
PRELOAD_SRC := $(sort $(wildcard preload/*.c))

SAMPLER_OBJ := $(SAMPLER_SRC:%.c=$(O)/%.o)
PPROF_OBJ   := $(PPROF_SRC:%.c=$(O)/%.o) $(O)/pprof/profile.pb-c.o
PUSH_OBJ    := $(PUSH_SRC:%.c=$(O)/%.o) $(PUSH_PROTO:%.proto=$(O)/%.pb-c.o)
SERVE_OBJ   := $(SERVE_SRC:%.c=$(O)/%.o)
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(O)/%.o)
# What the compiler compiles for.
MACHINE = $(eval MACHINE := $(or $(shell $(CC) -dumpmachine 2>/dev/null),$(shell uname -m)))$(MACHINE)

# ---- the products

include preload/preload.mk

programs: $(O)/heaptap $(O)/heaptap-push $(O)/heaptap-serve $(O)/libheaptap.so $(ATTACH_LIB)

$(O)/heaptap: $(SAMPLER_OBJ) $(PPROF_OBJ)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(HARD_LD) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/heaptap-push: $(PUSH_OBJ) $(PPROF_OBJ)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(HARD_LD) $(LDFLAGS) -o $@ $^ $(PPROF_LIBS) $(PUSH_LIBS)

# With sampler/linux and sampler/core, as .ci/layers allows.
$(O)/heaptap-serve: $(SERVE_OBJ) $(O)/core.a
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(HARD_LD) $(LDFLAGS) -o $@ $^ $(PPROF_LIBS) -pthread $(SERVE_LIBS)

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
$(O)/serve/endpoint.o: serve/openapi.json

# What `heaptap --version` says beside the version. One object depends on it, and only a new answer makes that object again.
.PHONY: ask-commit
ask-commit:
$(O)/commit: ask-commit
	@mkdir -p $(O)
	@commit=$$(.ci/commit); [ -e $@ ] && [ "$$commit" = "$$(cat $@)" ] || printf '%s' "$$commit" >$@
$(O)/sampler/main.o: $(O)/commit
$(O)/sampler/main.o: ALLFLAGS += -DHEAPTAP_COMMIT='"$(file <$(O)/commit)"'

# ---- what a user runs

## demo: make deps, then record a real redis-server under load and show its heap
demo:
	@echo 'demo: installs the Debian packages that are missing, builds, and records a redis-server under load'
	@.ci/packages $(PACKAGES_DEMO)
	@$(MAKE) --no-print-directory demo-run

demo-run: all
	@.ci/demo $(O)

## clean: remove every build folder
clean:
	rm -rf build build-*

## help: this list
help:
	@sed -n 's/^## /  /p' $(filter-out %.d,$(MAKEFILE_LIST))
	@echo '  options: V=1 (show commands), SAN=address,undefined, CC=clang, O=FOLDER, PREFIX=, DESTDIR=,'
	@echo '           T=PATTERN (only the tests whose name matches), FUZZ_SECONDS=10'

include install.mk tests/tests.mk tests/lab/lab.mk bench/bench.mk

# What each object was made of, as the compiler wrote it.
-include $(patsubst %.o,%.d,$(SAMPLER_OBJ) $(PPROF_OBJ) $(PUSH_OBJ) $(SERVE_OBJ) $(PRELOAD_OBJ) $(HOOK_OBJ) $(FUZZ_OBJ) \
	$(UNIT_SRC:%.c=$(O)/%.o) $(READER_SRC:%.c=$(O)/%.o) $(BENCH_OBJ)) $(TARGET_BIN:%=%.d) $(BENCH_BIN:%=%.d)
