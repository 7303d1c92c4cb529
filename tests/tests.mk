# SPDX-License-Identifier: Apache-2.0
# What is built and run in order to test: unit tests, end-to-end tests, fuzzers, and the checks of the sources.

UNIT_SRC   := $(sort $(wildcard tests/unit/*.c))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/*.c))
READER_SRC := $(sort $(wildcard tests/readers/*.c))
TARGET_SRC := $(sort $(wildcard tests/targets/*.c tests/targets/*.cc))

# What of the hook's half the unit tests link: its books, none of what it exports.
HOOK_OBJ   := $(patsubst %,$(O)/tests/%.o,$(filter-out $(addprefix preload/,api attach constructor hooks mmap \
	family next_symbol next_symbol_operators signal running),$(PRELOAD_SRC:%.c=%)))
CORE_OBJ   := $(filter-out $(O)/sampler/main.o,$(SAMPLER_OBJ)) $(PPROF_OBJ)
UNIT_BIN    = $(filter-out $(if $(ATTACH_LIB),,$(O)/tests/unit/remote_call),$(UNIT_SRC:%.c=$(O)/%))
FUZZ_BIN   := $(FUZZ_SRC:%.c=$(O)/%)
FUZZ_OBJ   := $(FUZZ_BIN:%=%.o)
READER_BIN := $(READER_SRC:%.c=$(O)/%) $(patsubst %.go,$(O)/%,$(wildcard tests/readers/*.go))
TARGET_BIN  = $(addprefix $(O)/tests/targets/,$(filter-out $(if $(ATTACH_LIB),,attach_calls),$(notdir $(basename $(TARGET_SRC)))))

GO := GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS= GOCACHE=$(abspath $(O))/gocache go

.PHONY: test check check-run check-engines engines unit unit-bin e2e readers targets fuzz fuzz-bin lint lint-run layers \
	graph graph-run headers cppcheck format format-check trust

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

# ---- running them

## check: make deps, then build, then every unit test and end-to-end test; the last line counts the tests
check:
	@echo 'check: installs the Debian packages that are missing (make deps), builds, and runs every test'
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory check-run

# The fuzzers run by clang alone, but must compile. Where Debian's arm64 packages cannot be had, the tests that need
# them are skipped; what does not build fails.
check-run: all unit-bin readers targets $(FUZZ_OBJ)
	@: >$(O)/arm64.tree$(if $(WITH_ARM64),; .ci/tree arm64 $(PACKAGES_ARM64) >$(O)/arm64.tree || :)
	@[ ! -s $(O)/arm64.tree ] || $(MAKE) --no-print-directory arm64-bin ARM64_TREE=$$(cat $(O)/arm64.tree)
	@# No MAKE in this line: programs under test must not get the descriptors of make's jobs.
	@HEAPTAP_ARM64=$$(cat $(O)/arm64.tree) HEAPTAP_ARM64_UNIT='$(if $(WITH_ARM64),$(ARM64_UNIT))' tests/run $(O) all '$(T)'

## test: the tests that T=PATTERN names; of T=unit/NAME only that test program is built (also with SAN=...)
test: all readers $(if $(TEST_UNIT),$(TEST_UNIT),unit-bin targets)
	@[ -n '$(T)' ] || { echo 'test: name a test: make test T=unit/pattern, make test T=e2e/snapshot_peak' >&2; exit 1; }
	@tests/run $(O) $(if $(TEST_UNIT),unit,all) '$(T)'

# The one program of T=unit/NAME or unit/NAME/TEST; empty for any other pattern.
TEST_UNIT = $(if $(filter unit/%,$(T)),$(filter $(O)/tests/unit/$(word 2,$(subst /, ,$(T))),$(UNIT_BIN)))

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

# ---- the sources themselves

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
	@for header in $(sort $(wildcard proto/*.h preload/*.h pprof/*/*.h push/*.h serve/*.h sampler/*/*.h sampler/*/*/*.h)); do \
		$(CC) $(CSTD) $(WARN) -I. -I$(O) -fsyntax-only -x c $$header 2>$(O)/header.log || \
			{ echo "headers: $$header does not stand alone" >&2; cat $(O)/header.log >&2; exit 1; }; \
	done

cppcheck: | $(PUSH_PROTO:%.proto=$(O)/%.pb-c.h)
	$(call quiet,LINT,cppcheck)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j2 -D_GNU_SOURCE \
		-DHEAPTAP_VERSION='""' -DHEAPTAP_COMMIT='""' -DHEAPTAP_LIBDIR='""' -D__x86_64__=1 -I. --enable=warning,portability,performance \
		--suppress=missingIncludeSystem --suppress=identicalInnerCondition \
		--suppress=shiftTooManyBitsSigned sampler pprof preload proto push serve
