# SPDX-License-Identifier: Apache-2.0
# heaptap: `make help` lists what there is to make.

CC      ?= gcc
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib/heaptap
V       ?= 0
SAN     ?=
O       ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(filter-out gcc cc,$(notdir $(CC))),-$(notdir $(CC)))
comma   := ,
VERSION := 0.1.0

# ---- the one list of packages; everything that installs one installs from here
PACKAGES_BUILD := gcc make pkg-config libc6-dev libdw-dev libelf-dev libpfm4-dev libprotobuf-c-dev \
	protobuf-c-compiler zlib1g-dev libiberty-dev
PACKAGES_DEMO  := redis-server redis-tools golang-go
PACKAGES_CHECK := $(PACKAGES_DEMO) libcmocka-dev golang-github-google-pprof-dev protobuf-compiler sqlite3 g++ \
	clang python3 nodejs binutils file util-linux cppcheck gdb git

quiet = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

WARN     := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wpointer-arith -Wno-unused-parameter
CFLAGS   ?= -O2 -g
CSTD     := -std=c11 -D_GNU_SOURCE
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
ALLFLAGS  = $(CSTD) $(WARN) $(CFLAGS) $(WERROR) -MMD -MP -I. -I$(O) -DHEAPTAP_VERSION='"$(VERSION)"' \
	-DHEAPTAP_LIBDIR='"$(LIBDIR)"'

SAMPLER_SRC := $(sort $(wildcard sampler/*.c))
PPROF_SRC   := $(sort $(wildcard pprof/*.c))
PRELOAD_SRC := $(sort $(wildcard preload/*.c))
UNIT_SRC    := $(sort $(wildcard tests/unit/*.c))
FUZZ_SRC    := $(sort $(wildcard tests/fuzz/*.c))
TARGET_SRC  := $(sort $(wildcard tests/targets/*.c) $(wildcard tests/targets/*.cc))

SAMPLER_OBJ := $(SAMPLER_SRC:%.c=$(O)/%.o)
PPROF_OBJ   := $(PPROF_SRC:%.c=$(O)/%.o) $(O)/pprof/profile.pb-c.o
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(O)/%.o)
CORE_OBJ    := $(filter-out $(O)/sampler/main.o,$(SAMPLER_OBJ)) $(PPROF_OBJ)
UNIT_BIN    := $(UNIT_SRC:tests/unit/%.c=$(O)/tests/unit/%)
FUZZ_BIN    := $(FUZZ_SRC:tests/fuzz/%.c=$(O)/tests/fuzz/%)
TARGET_BIN  := $(addprefix $(O)/tests/targets/,$(notdir $(basename $(TARGET_SRC))))

LIBS := -ldw -lelf -lpfm -lprotobuf-c -lz -liberty -lm

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help packages clean install tests demo check

## all: build/heaptap (command line and sampler) and build/libheaptap.so (preload)
all: $(O)/heaptap $(O)/libheaptap.so

## help: this list
help:
	@sed -n 's/^## /  /p' Makefile
	@printf '  options: V=1 (show commands) SAN=address,undefined CC=clang O=DIR PREFIX=DIR DESTDIR=DIR\n'

$(O)/heaptap: $(SAMPLER_OBJ) $(PPROF_OBJ)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# The half that lives in other people's processes: libc only, nothing exported but the map, no lazy binding
# surprises (-z now), and never a sanitizer runtime (the sanitizer builds test the sampler's side).
PRELOAD_FLAGS := -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt -fno-stack-protector \
	-fno-builtin -fcf-protection=return
$(O)/libheaptap.so: $(PRELOAD_OBJ) preload/preload.map
	$(call quiet,LD,$@)$(CC) -shared $(LDFLAGS) -Wl,-soname,libheaptap.so -Wl,--version-script=preload/preload.map \
		-Wl,-Bsymbolic-functions -Wl,-z,defs,-z,now,-z,relro,-z,nodlopen -Wl,--hash-style=gnu -o $@ $(PRELOAD_OBJ)

$(O)/preload/%.o: preload/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALLFLAGS) $(PRELOAD_FLAGS) -c -o $@ $<

$(O)/pprof/profile.pb-c.o: $(O)/pprof/profile.pb-c.c
	$(call quiet,CC,$<)$(CC) $(CSTD) $(CFLAGS) $(SANFLAGS) -I$(O) -c -o $@ $<

$(O)/pprof/profile.pb-c.c $(O)/pprof/profile.pb-c.h &: proto/profile.proto
	@mkdir -p $(@D)
	$(call quiet,PROTOC,$<)protoc-c --proto_path=proto --c_out=$(O)/pprof $(notdir $<)

$(O)/pprof/%.o: pprof/%.c | $(O)/pprof/profile.pb-c.h
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALLFLAGS) $(SANFLAGS) -c -o $@ $<

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALLFLAGS) $(SANFLAGS) -c -o $@ $<

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(CORE_OBJ)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

-include $(shell find $(O) -name '*.d' 2>/dev/null)

## clean: remove every build folder
clean:
	rm -rf build build-*
