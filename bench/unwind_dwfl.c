/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/unwind_dwfl.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct dwfl_reference {
	Dwfl *dwfl;
	bool attached;
	struct {
		const struct module *module;
		uint64_t bias;
	} * added;
	size_t n_added;
	const struct regs_arch *arch;
	/* The sample being unwound. */
	const struct regs *regs;
	const void *stack;
	size_t stack_bytes;
	uint64_t *pcs;
	size_t n, max;
};

static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
    const char *file, const char *link, GElf_Word crc, char **found)
{
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return 1;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
	struct dwfl_reference *r = arg;
	uint64_t offset = address - r->regs->r[r->arch->sp];

	if (offset >= r->stack_bytes || r->stack_bytes - offset < 8)
		return false;
	memcpy(result, (const char *)r->stack + offset, 8);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct dwfl_reference *r = arg;
	Dwarf_Word words[REGS_MAX];

	memcpy(words, r->regs->r, sizeof(words));
	dwfl_thread_state_register_pc(thread, r->regs->pc);
	return dwfl_thread_state_registers(thread, 0, r->arch->count, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

struct dwfl_reference *dwfl_reference_new(const struct regs_arch *arch)
{
	static const Dwfl_Callbacks callbacks = {
	    .find_elf = dwfl_build_id_find_elf, .find_debuginfo = find_no_debuginfo};
	struct dwfl_reference *r = calloc(1, sizeof(*r));

	r->dwfl = dwfl_begin(&callbacks);
	r->arch = arch;
	return r;
}

void dwfl_reference_free(struct dwfl_reference *r)
{
	dwfl_end(r->dwfl);
	free(r->added);
	free(r);
}

void dwfl_reference_add(struct dwfl_reference *r, const struct map *map)
{
	struct module *module = map->module;
	char name[32];
	int fd;

	if (!map->has_bias || !module->readable)
		return;
	for (size_t i = 0; i < r->n_added; i++) {
		/* A second report of a file elsewhere makes libdwfl forget the first. */
		if (r->added[i].module == module)
			return;
	}
	if (module->vdso) {
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (write(fd, module->file.memory, module->file.bytes) < 0)
			return;
	} else {
		fd = fcntl(module_fd(module), F_DUPFD_CLOEXEC, 0);
	}
	r->added = realloc(r->added, (r->n_added + 1) * sizeof(*r->added));
	r->added[r->n_added].module = module;
	r->added[r->n_added++].bias = map->bias;
	snprintf(name, sizeof(name), "m%zu", r->n_added);
	dwfl_report_begin_add(r->dwfl);
	if (!dwfl_report_elf(
	        r->dwfl, name, module->path, fd, module->file.e_type == ET_EXEC ? 0 : map->bias, true))
		fprintf(stderr, "libdwfl does not take %s: %s\n", module->path, dwfl_errmsg(-1));
	dwfl_report_end(r->dwfl, NULL, NULL);
	if (!r->attached) {
		r->attached = true;
		dwfl_attach_state(r->dwfl, NULL, 1, &thread_callbacks, r);
	}
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct dwfl_reference *r = arg;
	Dwarf_Addr pc;
	bool activation;

	if (!dwfl_frame_pc(frame, &pc, &activation) || r->n == r->max)
		return DWARF_CB_ABORT;
	r->pcs[r->n++] = pc - !activation;
	return DWARF_CB_OK;
}

size_t dwfl_reference_unwind(struct dwfl_reference *r, const struct regs *regs, const void *stack,
    size_t stack_bytes, uint64_t *pcs, size_t max)
{
	r->regs = regs;
	r->stack = stack;
	r->stack_bytes = stack_bytes;
	r->pcs = pcs;
	r->n = 0;
	r->max = max;
	dwfl_getthread_frames(r->dwfl, 1, on_frame, r);
	return r->n;
}
