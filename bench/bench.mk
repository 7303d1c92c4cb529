# SPDX-License-Identifier: Apache-2.0
# What is measured: cost, accuracy, growth, and leaks in real services.

BENCH_SRC := $(sort $(wildcard bench/programs/*.c bench/programs/*.cc))
BENCH_BIN := $(addprefix $(O)/bench/,$(notdir $(basename $(BENCH_SRC))))

.PHONY: accuracy accuracy-run bench bench-run bench-bin bench-unwind growth growth-traces leaks

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

# Programs to be measured, built alike.
$(O)/bench/%: bench/programs/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) -std=gnu11 -o $@ $< $(TARGET_FLAGS) -MMD -MP -MF $@.d

$(O)/bench/%: bench/programs/%.cc
	@mkdir -p $(@D)
	$(call quiet,CXX,$<)$(CXX) -std=c++17 -o $@ $< $(TARGET_FLAGS) -MMD -MP -MF $@.d
