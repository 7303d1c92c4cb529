/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile files: the input is an ELF file, mapped and called from a stack that returns into it. Whatever the
 * file says, headers, rows or compressed sections, each address has a rule and each stack an outcome.
 */
#include "sampler/unwind/cfi.h"
#include "sampler/unwind/unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES = 100, STACK = 0x7000000, ADDRESSES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unwind_from(struct maps *maps, const struct regs_arch *arch, const struct map *map, uint64_t pc)
{
	static struct unwind_frame frames[FRAMES];
	uint64_t stack[256];
	struct regs regs = {.pc = pc, .known = ~UINT64_C(0)};
	size_t n;

	for (size_t i = 0; i < 256; i++)
		stack[i] = i % 2 ? STACK + i * 8 : map->start + (pc + i * 37) % (map->end - map->start);
	for (size_t i = 0; i < REGS_MAX; i++)
		regs.r[i] = STACK + i * 16;
	regs.r[arch->sp] = STACK;
	struct unwind_input in = {.arch = arch,
	    .regs = &regs,
	    .maps = maps,
	    .stack_address = STACK,
	    .stack = stack,
	    .stack_bytes = sizeof(stack),
	    .stack_want = sizeof(stack)};
	if ((unsigned)unwind_stack(&in, frames, FRAMES, &n) >= UNWIND_OUTCOMES || n > FRAMES || n == 0)
		abort();
}

static void use_module(struct modules *store, struct module *module, const char *path)
{
	const struct regs_arch *arch = regs_arch_find(module->file.e_machine);
	struct maps *maps = maps_new(store, 0, true);

	for (uint32_t i = 0; i < module->file.segment_count; i++) {
		const struct module_segment *s = &module->file.segments[i];
		struct map_range range = {.start = s->vaddr & ~UINT64_C(4095),
		    .pgoff = s->offset & ~UINT64_C(4095),
		    .len = 0x2000,
		    .prot = PROT_READ | PROT_EXEC,
		    .path = path};

		if (maps_add(maps, &range) != 0)
			continue;
		const struct map *map = maps_module(maps, range.start);
		for (uint64_t k = 0; map && k < ADDRESSES; k++) {
			module_rule(module, s->vaddr + k * s->memory_bytes / ADDRESSES);
			unwind_from(maps, arch, map, map->start + k * (map->end - map->start) / ADDRESSES);
		}
	}
	maps_free(maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct modules *store = modules_new(0);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[48];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct module *module = module_get(store, &(struct module_request){.path = path});
	if (module->readable)
		use_module(store, module, path);
	module_unref(module);
	modules_free(store);
	close(fd);
	return 0;
}
