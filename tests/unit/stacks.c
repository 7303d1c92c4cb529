/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/*
 * Recorded stacks (tests/unit/stacks): programs of both architectures, by gcc and clang, with .eh_frame and
 * its table, without the table, with a compressed .debug_frame only, with signed return addresses,
 * interrupted by signals. The program wrote down itself what the frames are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/unwind_dwfl.h"
#include "sampler/unwind/cfi.h"
#include "sampler/unwind/stacks.h"
#include "sampler/unwind/unwind.h"
#include "tests/unit/stacks/stack_head.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 2048 };

static char *read_file(const char *name, size_t *n)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "tests/unit/stacks/%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		fail_msg("%s: not there (run from the top of the tree)", path);
	char *bytes = malloc((size_t)st.st_size);
	*n = (size_t)read(fd, bytes, (size_t)st.st_size);
	close(fd);
	return bytes;
}

static struct maps *map_program(struct modules *store, const char *name)
{
	char path[128];
	struct maps *maps = maps_new(store, 0, true);

	snprintf(path, sizeof(path), "tests/unit/stacks/%s.elf", name);
	/* As the kernel names it: in full. */
	char *full = realpath(path, NULL);
	if (!full)
		fail_msg("%s: not there (run from the top of the tree)", path);
	struct module *module = module_get(store, &(struct module_request){.path = full});
	if (!module->readable)
		fail_msg("%s: %s", full, strerror(-module->error));
	for (uint32_t i = 0; i < module->file.segment_count; i++) {
		const struct module_segment *s = &module->file.segments[i];
		struct map_range range = {.start = s->vaddr & ~UINT64_C(4095),
		    .pgoff = s->offset & ~UINT64_C(4095),
		    .prot = PROT_READ | (s->executable ? PROT_EXEC : 0),
		    .path = full};

		range.len = ((s->vaddr + s->file_bytes + 4095) & ~UINT64_C(4095)) - range.start;
		assert_int_equal(maps_add(maps, &range), 0);
	}
	free(full);
	module_unref(module);
	return maps;
}

static void check_stack(
    const char *program, struct maps *maps, const struct stack_head *head, const char *body)
{
	static struct unwind_frame frames[FRAMES];
	const struct regs_arch *arch = regs_arch_find(head->e_machine);
	const uint64_t *truth = (const uint64_t *)body;
	struct regs regs;
	size_t n;

	assert_non_null(arch);
	assert_int_equal(regs_from_dwarf(arch, head->pc, head->known, head->r, arch->count, &regs), 0);
	struct unwind_input in = {.arch = arch,
	    .regs = &regs,
	    .maps = maps,
	    .stack_address = regs.r[arch->sp],
	    .stack = body + head->n_truth * 8,
	    .stack_bytes = head->stack_bytes,
	    .stack_want = head->stack_bytes,
	    .reaches_end = !head->cut};
	enum unwind_outcome outcome = unwind_stack(&in, frames, FRAMES, &n);
	if (outcome != (head->cut ? UNWIND_TRUNCATED : UNWIND_COMPLETE))
		fail_msg("%s, %s: %s after %zu of %u frames", program, head->name,
		    unwind_outcome_name(outcome), n, head->n_truth + 1);
	for (size_t i = 1; i < n; i++)
		if (i > head->n_truth || frames[i].pc != truth[i - 1] - !frames[i].activation ||
		    frames[i].step != UNWIND_STEP_CFI)
			fail_msg("%s, %s: frame %zu of %zu is %lx", program, head->name, i, n, frames[i].pc);
	assert_true(head->cut ? n > 100 : n == head->n_truth + 1);
	/* Exact addresses: of what a signal has interrupted and of what its handler returns to; of the
	 * function that a stack was prepared for. */
	size_t exact = strcmp(head->name, "prepared") == 0 ? 1
	    : strcmp(program, "aarch64-signal") == 0       ? 2
	                                                   : 0;
	for (size_t i = 1; i < n; i++)
		exact -= frames[i].activation;
	assert_int_equal(exact, 0);
}

static const struct {
	const char *name;
	size_t stacks;
} programs[] = {
    {"x86_64-gcc", 7},
    {"x86_64-clang", 7},
    {"x86_64-debug_frame", 7},
    {"aarch64-gcc", 7},
    {"aarch64-pac", 7},
    {"aarch64-nofp", 7},
    /* interrupted by signals, and prepared for a function: record_signal.c */
    {"aarch64-signal", 3},
};

static void recorded_stacks(void **state)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct modules *store = modules_new(0);
		struct maps *maps = map_program(store, programs[i].name);
		size_t bytes, at = 0, stacks = 0;
		char name[64];

		snprintf(name, sizeof(name), "%s.stacks", programs[i].name);
		char *file = read_file(name, &bytes);
		while (at + sizeof(struct stack_head) <= bytes) {
			struct stack_head head;

			memcpy(&head, file + at, sizeof(head));
			at += sizeof(head);
			assert_true(head.magic == STACK_MAGIC && head.n_truth <= STACK_TRUTH_MAX);
			assert_true(bytes - at >= head.n_truth * 8 + head.stack_bytes);
			check_stack(programs[i].name, maps, &head, file + at);
			at += head.n_truth * 8 + head.stack_bytes;
			stacks++;
		}
		assert_int_equal(stacks, programs[i].stacks);
		free(file);
		maps_free(maps);
		modules_free(store);
	}
}

/* What libdwfl makes of a recorded stack is what the program wrote down, and so what we make of it. */
static void check_reference(const char *program, const struct maps *maps, struct dwfl_reference *reference,
    const struct stack_head *head, const char *body)
{
	static uint64_t pcs[FRAMES];
	const struct regs_arch *arch = regs_arch_find(head->e_machine);
	const uint64_t *truth = (const uint64_t *)body;
	struct regs regs;

	assert_int_equal(regs_from_dwarf(arch, head->pc, head->known, head->r, arch->count, &regs), 0);
	for (size_t i = 0; i < maps_count(maps); i++)
		dwfl_reference_add(reference, maps_at(maps, i));
	size_t n =
	    dwfl_reference_unwind(reference, &regs, body + head->n_truth * 8, head->stack_bytes, pcs, FRAMES);
	size_t wanted = head->cut && n <= head->n_truth ? n : head->n_truth + 1;
	if (n != wanted || n < 2)
		fail_msg("%s, %s: libdwfl has %zu of %u frames", program, head->name, n, head->n_truth + 1);
	for (size_t i = 1; i < n; i++)
		if (pcs[i] != truth[i - 1] - 1)
			fail_msg("%s, %s: libdwfl's frame %zu is %lx", program, head->name, i, pcs[i]);
}

static void libdwfl_agrees(void **state)
{
	/* It knows neither signed return addresses nor the vdso's way back from a signal on aarch64. */
	static const char *const both[] = {
	    "x86_64-gcc", "x86_64-clang", "x86_64-debug_frame", "aarch64-gcc", "aarch64-nofp"};

	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		struct modules *store = modules_new(0);
		struct maps *maps = map_program(store, both[i]);
		size_t bytes, at = 0;
		char name[64];

		snprintf(name, sizeof(name), "%s.stacks", both[i]);
		char *file = read_file(name, &bytes);
		struct dwfl_reference *reference = NULL;
		while (at + sizeof(struct stack_head) <= bytes) {
			struct stack_head head;

			memcpy(&head, file + at, sizeof(head));
			at += sizeof(head);
			if (!reference)
				reference = dwfl_reference_new(regs_arch_find(head.e_machine));
			check_reference(both[i], maps, reference, &head, file + at);
			at += head.n_truth * 8 + head.stack_bytes;
		}
		assert_non_null(reference);
		dwfl_reference_free(reference);
		free(file);
		maps_free(maps);
		modules_free(store);
	}
}

/* On signed return addresses the code must be stripped, and it is there: else this test would show nothing.
 * */
static void signed_return_addresses(void **state)
{
	size_t bytes, n_signed = 0;
	char *file = read_file("aarch64-pac.stacks", &bytes);

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t word;

		memcpy(&word, file + i, 8);
		n_signed += word >> 48 && (word & regs_aarch64.code_mask) - 0x400000 < 0x10000;
	}
	assert_true(n_signed > 100);
	free(file);
}

/* What a stack was interned from, from its innermost node on, with a marker where a run of guesses begins. */
static void check_interned(const struct stacks *table, uint32_t stack, const struct unwind_frame *frames,
    size_t n, const char *marker)
{
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && frames[i].step == UNWIND_STEP_FP && frames[i - 1].step != UNWIND_STEP_FP) {
			assert_ptr_equal(stacks_frame(table, stacks_node(table, stack)->frame)->marker,
			    unwind_marker(UNWIND_GUESSED));
			stack = stacks_node(table, stack)->outer;
		}
		const struct stack_node *node = stacks_node(table, stack);
		const struct stack_frame *frame = stacks_frame(table, node->frame);
		assert_true(frame->pc == frames[i].pc && frame->vaddr == frames[i].vaddr && !frame->marker);
		assert_ptr_equal(stacks_mapping(table, frame->mapping)->module, frames[i].module);
		stack = node->outer;
	}
	if (marker) {
		assert_ptr_equal(stacks_frame(table, stacks_node(table, stack)->frame)->marker, marker);
		stack = stacks_node(table, stack)->outer;
	}
	assert_int_equal(stack, STACK_ROOT);
}

/*
 * Stacks that return through any of some thousand places of one program, outermost frames shared or not, cut
 * short or not, in maps that change in between: the second sight of each is the same number, without anything
 * added. The unwinder is there for the numbers that it carries for the table.
 */
static void interned_stacks(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = map_program(store, "x86_64-gcc");
	struct stacks *table = stacks_new();
	struct map_range elsewhere = {.start = 0x7000000, .len = 0x10000, .prot = PROT_READ | PROT_EXEC};
	static struct unwind_frame frames[FRAMES];
	uint32_t seed = 1, number[3000], nodes = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		seed = 1;
		for (unsigned i = 0; i < 3000; i++) {
			uint64_t stack[64];
			struct regs regs = {.pc = elsewhere.start, .known = 1 << 6 | 1 << 7};
			size_t n, depth = 2 + i % 29;

			/* In code without rows each frame is {frame pointer, return address}. */
			for (size_t k = 0; k < depth; k++) {
				seed = seed * 1664525 + 1013904223;
				stack[2 * k] = k + 1 < depth ? 0x1000 + 16 * (k + 1) : 0;
				stack[2 * k + 1] = k + 1 < depth
				    ? elsewhere.start + 1 + (seed >> 8) % (k > 6 ? 3 : 5000)
				    : 0;
			}
			regs.r[6] = regs.r[7] = 0x1000;
			struct unwind_input in = {.arch = &regs_x86_64,
			    .regs = &regs,
			    .maps = maps,
			    .stack_address = 0x1000,
			    .stack = stack,
			    .stack_bytes = depth * 16,
			    .stack_want = sizeof(stack)};
			if (i % 1000 == 0)
				assert_int_equal(maps_add(maps, &elsewhere), 0);
			enum unwind_outcome outcome = unwind_stack(&in, frames, FRAMES, &n);
			assert_int_equal(n, depth);
			/* Some go through code with rows as well: several runs of guesses, or one up to the
			 * innermost frame. */
			for (size_t k = 0; k < n && i % 5 == 0; k++)
				frames[k].step = (i * k) % 7 < 3 ? UNWIND_STEP_CFI : UNWIND_STEP_FP;
			const char *marker = i % 3 ? NULL : unwind_marker(UNWIND_TRUNCATED);
			assert_int_equal(outcome, UNWIND_COMPLETE);
			uint32_t interned = stacks_intern(table, frames, n, marker, maps);
			check_interned(table, interned, frames, n, marker);
			if (pass)
				assert_int_equal(interned, number[i]);
			number[i] = interned;
		}
		if (pass)
			assert_int_equal(stacks_node_count(table), nodes);
		nodes = stacks_node_count(table);
	}
	assert_in_range(stacks_frame_count(table), 4000, 5003); /* with two markers */
	/* A full table still knows what it has, and takes no more. */
	static struct unwind_frame strange = {.pc = UINT64_C(0x7fff00000000), .kind = MAP_KIND_SPECIAL};
	uint64_t bytes = stacks_bytes(table);
	stacks_set_full(table, true);
	assert_int_equal(stacks_intern(table, &strange, 1, NULL, maps), UINT32_MAX);
	assert_int_equal(stacks_intern(table, NULL, 0, unwind_marker(UNWIND_TRUNCATED), maps),
	    stacks_intern(table, NULL, 0, unwind_marker(UNWIND_TRUNCATED), maps));
	assert_int_not_equal(
	    stacks_intern(table, NULL, 0, unwind_marker(UNWIND_TRUNCATED), maps), UINT32_MAX);
	assert_int_equal(stacks_bytes(table), bytes);
	assert_int_equal(stacks_node_count(table), nodes);
	stacks_set_full(table, false);
	assert_int_not_equal(stacks_intern(table, &strange, 1, NULL, maps), UINT32_MAX);
	/* The stacks of another process by its own table: nothing that was remembered for one serves the
	 * other. */
	struct stacks *other = stacks_new();
	uint32_t translated = stacks_translate(table, number[2999], other);
	assert_int_equal(stacks_translate(table, number[2999], other), translated);
	assert_true(translated != UINT32_MAX);
	assert_int_equal(stacks_translate(table, number[2999], table), number[2999]);
	stacks_unref(other);
	assert_ptr_equal(stacks_ref(table), table);
	stacks_unref(table);
	assert_int_equal(stacks_node_count(table), nodes + 1); /* with the strange one */
	stacks_unref(table);
	maps_free(maps);
	modules_free(store);
}

enum { OUTERS = 4096, MADE = 4 * OUTERS };

static uint64_t cpu_ns(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Nodes (outer, frame) in a table that has OUTERS of each; CPU time. */
static uint64_t add_nodes(const struct stack_node *wanted)
{
	const struct stack_mapping mapping = {.start = 1 << 20, .end = 2 << 20, .kind = MAP_KIND_SPECIAL};
	struct stacks *table = stacks_new();

	for (uint32_t i = 0; i < OUTERS; i++) {
		const struct stack_frame frame = {.pc = (1 << 20) + i};

		assert_int_equal(stacks_add(table, STACK_ROOT, &frame, &mapping), i + 1);
	}
	const uint64_t begun_ns = cpu_ns();
	for (uint32_t i = 0; i < MADE; i++) {
		const struct stack_frame frame = {.pc = (1 << 20) + wanted[i].frame};

		assert_int_not_equal(stacks_add(table, wanted[i].outer, &frame, &mapping), UINT32_MAX);
	}
	const uint64_t taken_ns = cpu_ns() - begun_ns;
	stacks_unref(table);
	return taken_ns;
}

/* A target knows its nodes' numbers. Multiplied by 2^64 / golden ratio, the products of the chosen ones have
 * the same ten upper bits: where that alone is the hash, each search goes through all of them. */
static void nobody_chooses_nodes_that_collide(void **state)
{
	static struct stack_node chosen[MADE], others[MADE];
	size_t count = 0;

	(void)state;
	for (uint32_t outer = 1; outer <= OUTERS && count < MADE; outer++)
		for (uint32_t frame = 0; frame < OUTERS && count < MADE; frame++)
			if (((uint64_t)outer << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15) >> 54 == 0)
				chosen[count++] = (struct stack_node){outer, frame};
	assert_true(count > MADE / 2);
	for (uint32_t i = 0; i < MADE; i++) {
		others[i] = (struct stack_node){1 + i % OUTERS, i / OUTERS * 1000};
		chosen[i] = i < count ? chosen[i] : others[i];
	}
	/* the best of three: what interrupts us is counted as ours */
	uint64_t usual_ns = UINT64_MAX, chosen_ns = UINT64_MAX;
	for (int i = 0; i < 3; i++) {
		const uint64_t others_ns = add_nodes(others), these_ns = add_nodes(chosen);

		usual_ns = others_ns < usual_ns ? others_ns : usual_ns;
		chosen_ns = these_ns < chosen_ns ? these_ns : chosen_ns;
	}
	print_message("%u nodes: %llu us, chosen ones %llu us\n", MADE, (unsigned long long)usual_ns / 1000,
	    (unsigned long long)chosen_ns / 1000);
	assert_true(chosen_ns < 10 * usual_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(recorded_stacks),
	    cmocka_unit_test(libdwfl_agrees),
	    cmocka_unit_test(signed_return_addresses),
	    cmocka_unit_test(interned_stacks),
	    cmocka_unit_test(nobody_chooses_nodes_that_collide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
