/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile registers and stacks over good modules: the recorded programs of both architectures (found if it is
 * run from the top of the tree) and this program's own.
 *
 * Input: a byte that chooses the architecture, 8 bytes of options, 8 a register, then the stack. Words whose
 * upper half is a small tag become addresses of code or of the stack, so that mutations meet them.
 */
#include "sampler/unwind/unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES = 600, STACK = 0x7000000 };

static struct maps *x86, *aarch64;

static void add_program(struct modules *store, struct maps *maps, const char *name)
{
	char *path = realpath(name, NULL);
	struct module *module = path ? module_get(store, &(struct module_request){.path = path}) : NULL;

	for (uint32_t i = 0; module && i < module->file.segment_count; i++) {
		const struct module_segment *s = &module->file.segments[i];
		struct map_range range = {.start = s->vaddr & ~UINT64_C(4095),
		    .pgoff = s->offset & ~UINT64_C(4095),
		    .len = 0x2000,
		    .prot = PROT_READ | (s->executable ? PROT_EXEC : 0),
		    .path = path};

		maps_add(maps, &range);
	}
	module_unref(module);
	free(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct modules *store = modules_new(0);
	struct map_range jit = {
	    .start = 0x10000, .len = 0x10000, .prot = PROT_READ | PROT_EXEC, .path = "//anon"};

	x86 = maps_new(store, getpid(), true);
	maps_read_proc(x86);
	add_program(store, x86, "tests/unit/stacks/x86_64-gcc.elf");
	maps_add(x86, &jit);
	aarch64 = maps_new(store, 0, true);
	add_program(store, aarch64, "tests/unit/stacks/aarch64-pac.elf");
	maps_add(aarch64, &jit);
	return 0;
}

static uint64_t make_word(uint64_t word, const struct maps *maps)
{
	uint64_t tag = word >> 32, low = word & 0xffffffff;

	if (tag == 1)
		return STACK + low % 0x4000;
	if (tag == 2 && maps_count(maps)) {
		const struct map *map = maps_at(maps, (low >> 24) % maps_count(maps));

		return map->start + (low & 0xffffff) % (map->end - map->start);
	}
	return word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct unwind_frame frames[FRAMES], again[FRAMES];
	static uint64_t stack[4096];
	struct regs regs = {.known = ~UINT64_C(0)};
	size_t n_words, n, n_again;

	if (size < 9 + 8 * (REGS_MAX + 1))
		return 0;
	const struct regs_arch *arch = data[0] & 1 ? &regs_aarch64 : &regs_x86_64;
	struct maps *maps = data[0] & 1 ? aarch64 : x86;
	uint32_t options;
	memcpy(&options, data + 1, 4);
	data += 9;
	memcpy(&regs.pc, data, 8);
	memcpy(regs.r, data + 8, sizeof(regs.r));
	data += 8 * (REGS_MAX + 1);
	n_words = (size - 9 - 8 * (REGS_MAX + 1)) / 8;
	n_words = n_words < 4096 ? n_words : 4096;
	memcpy(stack, data, n_words * 8);
	for (size_t i = 0; i < n_words; i++)
		stack[i] = make_word(stack[i], maps);
	for (size_t i = 0; i < REGS_MAX; i++)
		regs.r[i] = make_word(regs.r[i], maps);
	regs.pc = make_word(regs.pc, maps);
	if (options & 1)
		regs.r[arch->sp] = STACK;
	struct unwind_input in = {.arch = arch,
	    .regs = &regs,
	    .maps = maps,
	    .stack_address = options & 2 ? STACK : regs.r[arch->sp],
	    .stack = stack,
	    .stack_bytes = n_words * 8,
	    .stack_want = options & 4 ? n_words * 8 : sizeof(stack),
	    .reaches_end = options & 8};
	size_t max = options & 16 ? FRAMES : options >> 8 & 7;
	enum unwind_outcome outcome = unwind_stack(&in, frames, max, &n);
	if ((unsigned)outcome >= UNWIND_OUTCOMES || n > max || (max && !n))
		abort();
	for (size_t i = 0; i < n; i++)
		if (frames[i].module && !frames[i].module->references)
			abort();
	/* The same again, now from the caches. */
	if (unwind_stack(&in, again, max, &n_again) != outcome || n_again != n)
		abort();
	for (size_t i = 0; i < n; i++)
		if (frames[i].pc != again[i].pc || frames[i].vaddr != again[i].vaddr)
			abort();
	return 0;
}
