/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder on real programs: agreement with plain libdwfl, completeness, speed, memory.
 *
 *	unwind [-c] [-n SAMPLES] [-v] [-m PERCENT] [PROGRAM...]
 *
 * Each program known here (or those named) is run under perf, its main thread's stacks are dumped at every
 * n-th allocation (-c: every millisecond on the CPU, at any instruction), and each dump is unwound by both.
 * -v prints the stacks that differ; -m: exit status 1 if less than PERCENT of the stacks of some program are
 * the same.
 */
#include "sampler/unwind/unwind.h"
#include "bench/unwind_cold.h"
#include "bench/unwind_dwfl.h"
#include "bench/unwind_programs.h"
#include "bench/unwind_record.h"
#include "sampler/books/intake.h"
#include "sampler/intake/map_record.h"
#include "sampler/unwind/cfi.h"
#include "sampler/unwind/stacks.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES_MAX = 4096, REFERENCE_TIMED_MAX = 500, TURNS = 8, TURN_NS = 60000000, RING_BYTES = 4 << 20 };

struct result {
	size_t samples, frames, same, reference_longer, reference_shorter, different;
	size_t outcome[UNWIND_OUTCOMES];
	double reference_us, unwind_us, intern_us;
	struct cold_cost cold;
	size_t nodes;
	struct cfi_usage usage;
};

struct bench {
	struct modules *store;
	struct maps *maps;
	struct stacks *stacks;
	uint64_t interned; /* keeps the compiler from leaving it out */
	struct dwfl_reference *reference;
	struct cold *cold;
	const struct recording *recording;
	pthread_barrier_t turn; /* between who fills the ring and who empties it */
	size_t at, used;        /* in the recording, in the ring */
	bool ended;
	uint8_t ring[RING_BYTES] __attribute__((aligned(8)));
	struct unwind_frame frames[FRAMES_MAX];
	uint64_t pcs[FRAMES_MAX];
	bool verbose;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_mmap(struct bench *b, const struct record *r, pid_t pid)
{
	struct map_range range = map_record_range(r);

	if ((pid_t)r->pid != pid || maps_add(b->maps, &range) != 0)
		return;
	const struct map *map = maps_module(b->maps, r->start);
	if (map && b->reference)
		dwfl_reference_add(b->reference, map);
}

static bool next_record(const struct recording *recording, size_t *at, struct record *record)
{
	const struct perf_event_header *header = recording_next(recording, at);

	if (header && record_parse(header, header->size, regs_arch_native()->perf_mask, record) != 0)
		record->kind = RECORD_OTHER;
	return header;
}

/* As sampler/books/intake.c does it. */
static bool input_of(struct bench *b, const struct record *record, struct regs *regs, struct unwind_input *in)
{
	const struct regs_arch *arch = regs_arch_native();

	if (record->kind != RECORD_SAMPLE || record->regs_abi != PERF_SAMPLE_REGS_ABI_64 ||
	    regs_from_perf(arch, arch->perf_mask, record->regs, record->regs_count, regs) != 0)
		return false;
	*in = (struct unwind_input){.arch = arch,
	    .regs = regs,
	    .maps = b->maps,
	    .stack_address = regs->r[arch->sp],
	    .stack = record->stack,
	    .stack_bytes = record->stack_bytes,
	    .stack_want = record->stack_want};
	intake_prefetch(record);
	return true;
}

static void print_difference(const struct bench *b, size_t n, size_t n_reference, enum unwind_outcome outcome)
{
	size_t most = n > n_reference ? n : n_reference;

	printf("differs: %zu frames (%s), libdwfl %zu\n", n, unwind_outcome_name(outcome), n_reference);
	for (size_t i = 0; i < most; i++) {
		const struct unwind_frame *f = i < n ? &b->frames[i] : NULL;

		if (f && i < n_reference && f->pc == b->pcs[i] && i + 3 < n && i + 3 < n_reference)
			continue;
		printf("  %2zu %016lx %016lx %s +%lx %s\n", i, f ? f->pc : 0, i < n_reference ? b->pcs[i] : 0,
		    f && f->module ? f->module->path : "-", f ? f->vaddr : 0,
		    f && f->step == UNWIND_STEP_FP ? "fp" : "");
	}
}

static void compare(struct bench *b, struct result *result, const struct unwind_input *in, size_t n,
    enum unwind_outcome outcome)
{
	size_t n_reference =
	    dwfl_reference_unwind(b->reference, in->regs, in->stack, in->stack_bytes, b->pcs, FRAMES_MAX);
	size_t common = 0;

	while (common < n && common < n_reference && b->frames[common].pc == b->pcs[common])
		common++;
	if (common == n && common == n_reference)
		result->same++;
	else if (common == n)
		result->reference_longer++;
	else if (common == n_reference)
		result->reference_shorter++;
	else
		result->different++;
	if (b->verbose && !(common == n && common == n_reference))
		print_difference(b, n, n_reference, outcome);
}

/* In the order of events, maps as they were: RESULT of both unwinders. */
static void in_order(struct bench *b, const struct recording *recording, struct result *result)
{
	struct record record;
	size_t at = 0;

	while (next_record(recording, &at, &record)) {
		struct unwind_input in;
		struct regs regs;
		size_t n;

		if (record.kind == RECORD_MMAP)
			on_mmap(b, &record, recording->pid);
		else if (record.kind == RECORD_COMM && record.exec)
			maps_clear(b->maps);
		if (!input_of(b, &record, &regs, &in))
			continue;
		enum unwind_outcome outcome = unwind_stack(&in, b->frames, FRAMES_MAX, &n);
		cold_add(b->cold, b->frames, n);
		result->outcome[outcome]++;
		result->frames += n;
		result->samples++;
		compare(b, result, &in, n, outcome);
	}
}

enum what { REFERENCE, UNWIND, INTERN, WHATS };

static bool take(struct bench *b, const struct record *record, enum what what)
{
	struct unwind_input in;
	struct regs regs;
	size_t n;

	if (!input_of(b, record, &regs, &in))
		return false;
	if (what == REFERENCE) {
		dwfl_reference_unwind(b->reference, &regs, in.stack, in.stack_bytes, b->pcs, FRAMES_MAX);
		return true;
	}
	enum unwind_outcome outcome = unwind_stack(&in, b->frames, FRAMES_MAX, &n);
	if (what == INTERN)
		b->interned += stacks_intern(b->stacks, b->frames, n, unwind_marker(outcome), b->maps);
	return true;
}

/* Records from b->at on, as many as a ring holds. */
static void fill_ring(struct bench *b)
{
	const struct perf_event_header *header;
	size_t next = b->at;

	b->used = 0;
	while ((header = recording_next(b->recording, &next)) && b->used + header->size <= RING_BYTES) {
		memcpy(b->ring + b->used, header, header->size);
		b->used += header->size;
		b->at = next;
	}
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* In a target's place: what it writes comes from another processor's cache. */
static void *fill_rings(void *arg)
{
	struct bench *b = arg;

	run_on(1);
	while (pthread_barrier_wait(&b->turn), !b->ended) {
		fill_ring(b);
		pthread_barrier_wait(&b->turn);
	}
	return NULL;
}

static size_t next_ring(struct bench *b)
{
	pthread_barrier_wait(&b->turn);
	pthread_barrier_wait(&b->turn);
	return b->used;
}

/*
 * One pass over the recording, a ring of it after the other, as the kernel hands it out: nanoseconds for a
 * stack. The copy into the ring is not counted, all that follows is.
 */
static double pass(struct bench *b, enum what what, size_t max)
{
	uint64_t spent = 0;
	size_t done = 0;

	b->at = 0;
	while (done < max && next_ring(b)) {
		uint64_t start = now_ns();

		for (size_t i = 0; i < b->used;) {
			const struct perf_event_header *header = (const void *)(b->ring + i);
			struct record record;

			if (record_parse(header, header->size, regs_arch_native()->perf_mask, &record) == 0)
				done += take(b, &record, what);
			i += header->size;
		}
		spent += now_ns() - start;
	}
	return done ? (double)spent / (double)done : 0;
}

/*
 * The best of several passes for each, in turns, since the machine is shared: microseconds for a stack. A
 * turn is some passes, the first of which finds the other's data in the caches.
 */
static void time_passes(struct bench *b, struct result *result)
{
	double best[WHATS] = {0};
	pthread_t filler;

	run_on(0);
	pthread_barrier_init(&b->turn, NULL, 2);
	if (pthread_create(&filler, NULL, fill_rings, b) != 0)
		return;
	for (unsigned turn = 0; turn < TURNS * WHATS; turn++) {
		enum what what = turn % WHATS;

		for (uint64_t end = now_ns() + TURN_NS; now_ns() < end;) {
			double took = pass(b, what, what == REFERENCE ? REFERENCE_TIMED_MAX : SIZE_MAX);

			best[what] = best[what] == 0 || took < best[what] ? took : best[what];
		}
	}
	b->ended = true;
	pthread_barrier_wait(&b->turn);
	pthread_join(filler, NULL);
	result->reference_us = best[REFERENCE] / 1e3;
	result->unwind_us = best[UNWIND] / 1e3;
	result->intern_us = best[INTERN] / 1e3;
}

static void add_usage(struct bench *b, struct result *result)
{
	const struct module *seen[256];
	size_t n_seen = 0;

	for (size_t i = 0; i < maps_count(b->maps); i++) {
		const struct map *map = maps_at(b->maps, i);
		struct cfi_usage usage;
		bool again = !map->module;

		for (size_t k = 0; k < n_seen; k++)
			again |= seen[k] == map->module;
		if (again || n_seen == 256)
			continue;
		seen[n_seen++] = map->module;
		module_measure_cfi(map->module, &usage);
		result->usage.addresses += usage.addresses;
		result->usage.rules += usage.rules;
		result->usage.odd += usage.odd;
		result->usage.own_bytes += usage.own_bytes;
		result->usage.copied_bytes += usage.copied_bytes;
	}
}

static void print_result(const char *name, const struct result *r, size_t lost)
{
	double depth = (double)r->frames / (double)r->samples;

	printf("%-8s %7zu %6.1f %8.2f %7.2f %7.2f %5.1fx %6.0f %5.1fx %5.0f %5.2f %7.2f%% %7.2f%% "
	       "%zu/%zu/%zu %8zu %5zu %4.0f "
	       "%6zu %6zu",
	    name, r->samples, depth, r->reference_us, r->unwind_us, r->intern_us,
	    r->reference_us / r->unwind_us, 1e3 / r->intern_us, r->reference_us / r->intern_us,
	    r->cold.file_us, r->cold.address_us,
	    100.0 * (double)r->outcome[UNWIND_COMPLETE] / (double)r->samples,
	    100.0 * (double)r->same / (double)r->samples, r->reference_longer, r->reference_shorter,
	    r->different, r->usage.addresses, r->usage.rules,
	    (double)r->usage.own_bytes / (double)(r->usage.addresses + 1), r->usage.copied_bytes / 1024,
	    r->nodes);
	for (int i = UNWIND_COMPLETE + 1; i < UNWIND_OUTCOMES; i++)
		if (r->outcome[i])
			printf(", %zu %s", r->outcome[i], unwind_outcome_name((enum unwind_outcome)i));
	if (lost)
		printf(", %zu lost", lost);
	printf("\n");
	fflush(stdout);
}

/* Share of stacks that are the same, in percent; -1 if the program could not be recorded. */
static double run(const struct program *program, bool on_clock, size_t max_samples, bool verbose)
{
	struct trigger trigger = {
	    on_clock ? NULL : program->file, program->function, on_clock ? 1000000 : program->period, 65528};
	struct bench *b = calloc(1, sizeof(*b));
	struct recording recording;
	struct result result = {0};
	int err = recording_run(&recording, (char *const *)program->argv,
	    program->load[0] ? (char *const *)program->load : NULL, &trigger, max_samples);

	if (err || !recording.samples) {
		printf("%-8s skipped: %s\n", program->name, err ? strerror(-err) : "no samples");
		recording_free(&recording);
		free(b);
		return -1;
	}
	b->verbose = verbose;
	b->recording = &recording;
	b->store = modules_new(0);
	b->maps = maps_new(b->store, recording.pid, true);
	b->reference = dwfl_reference_new(regs_arch_native());
	b->cold = cold_new();
	in_order(b, &recording, &result);
	b->stacks = stacks_new();
	time_passes(b, &result);
	result.nodes = stacks_node_count(b->stacks);
	add_usage(b, &result);
	cold_measure(b->cold, &result.cold);
	print_result(program->name, &result, recording.lost);
	cold_free(b->cold);
	dwfl_reference_free(b->reference);
	stacks_unref(b->stacks);
	maps_free(b->maps);
	modules_free(b->store);
	recording_free(&recording);
	free(b);
	return 100.0 * (double)result.same / (double)result.samples;
}

int main(int argc, char **argv)
{
	bool on_clock = false, verbose = false, failed = false;
	size_t max_samples = 3000;
	double least = -1;
	int option;

	while ((option = getopt(argc, argv, "cvn:m:")) != -1) {
		if (option == 'c')
			on_clock = true;
		else if (option == 'v')
			verbose = true;
		else if (option == 'n')
			max_samples = strtoul(optarg, NULL, 0);
		else if (option == 'm')
			least = strtod(optarg, NULL);
		else
			return 2;
	}
	if (system(prepare) != 0)
		fprintf(stderr, "not everything could be prepared in %s\n", WORK);
	printf("us a stack: by libdwfl; by heaptap, unwinding alone and with reading the record and "
	       "interning the stack;\n"
	       "the ratios of these to libdwfl, stacks a second; us for a file and for\nan address in it at "
	       "first sight; stacks that reach the "
	       "start,\nthat are the same as libdwfl's, and of the others whose libdwfl list is "
	       "longer/shorter/different; "
	       "addresses seen,\nrules, heaptap's bytes an address, KiB read of the files, nodes of interned "
	       "stacks\n"
	       "program  samples  depth  libdwfl  unwind  intern  ratio    k/s  ratio  file  cold complete   "
	       "  same l/s/d    "
	       "addrs rules    B    KiB  nodes\n");
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		bool wanted = optind == argc;

		for (int k = optind; k < argc; k++)
			wanted |= strcmp(argv[k], programs[i].name) == 0;
		if (wanted) {
			double same = run(&programs[i], on_clock, max_samples, verbose);

			failed |= same >= 0 && same < least;
		}
	}
	return failed;
}
