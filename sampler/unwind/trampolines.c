/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/trampolines.h"

#include "sampler/linux/memory_reader.h"
#include "sampler/linux/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES_MAX = 24 };

/* The code behind the call takes the frame down again, so the rule holds at the return address. */
static const struct kind {
	uint16_t e_machine;
	uint8_t bytes, returns_at;
	uint8_t align; /* of instructions, bytes */
	uint8_t code[BYTES_MAX];
	struct cfi_rule rule;
} kinds[] = {
    {EM_X86_64, 11, 6, 1, {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3},
        {.kind = CFI_SIMPLE, .cfa_reg = 7, .cfa_offset = 16, .ra_offset = -8}},
    /* rbp is the second of those that regs_x86_64 tracks */
    {EM_X86_64, 8, 6, 1, {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},
        {.kind = CFI_SIMPLE,
            .cfa_reg = 7,
            .cfa_offset = 16,
            .ra_offset = -8,
            .saved = 1 << 1,
            .offset = {[1] = -16}}},
    /* x29 is the last of those of regs_aarch64. With pointer authentication, which adds an instruction at the
     * beginning and one in front of ret, the code is the same up to the second. */
    {EM_AARCH64, 16, 12, 4,
        {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 3, 0, 0x91, 0x60, 0, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8},
        {.kind = CFI_SIMPLE,
            .cfa_reg = 31,
            .cfa_offset = 16,
            .ra_offset = -8,
            .saved = 1 << 10,
            .offset = {[10] = -16}}},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct trampolines {
	unsigned references;
	uint64_t start;
	size_t count;
	struct trampolines_run run[];
};

/* Adds a return address, which must be above all others of its kind. False if there is no room. */
static bool add(struct trampolines_run *runs, size_t *count, size_t first_of_kind, uint32_t at, uint32_t kind)
{
	struct trampolines_run *last = *count > first_of_kind ? &runs[*count - 1] : NULL;

	if (last && last->count == 1)
		last->stride = at - last->first;
	if (last && at - last->first == last->stride * last->count) {
		last->count++;
		return true;
	}
	if (*count == TRAMPOLINES_RUNS_MAX)
		return false;
	runs[(*count)++] = (struct trampolines_run){.first = at, .stride = 1, .count = 1, .kind = kind};
	return true;
}

size_t trampolines_find(uint16_t e_machine, const uint8_t *code, size_t code_bytes,
    struct trampolines_run runs[TRAMPOLINES_RUNS_MAX])
{
	size_t count = 0;

	for (uint32_t i = 0; i < KINDS; i++) {
		const struct kind *kind = &kinds[i];
		const size_t first_of_kind = count;
		const uint8_t *at = code, *end = code + code_bytes;

		while (code_bytes && kind->e_machine == e_machine &&
		    (at = memmem(at, (size_t)(end - at), kind->code, kind->bytes))) {
			const uint32_t offset = (uint32_t)(at - code);
			if (offset % kind->align) {
				at++;
				continue;
			}
			if (!add(runs, &count, first_of_kind, offset + kind->returns_at, i))
				break;
			at += kind->bytes;
		}
	}
	return count;
}

struct trampolines *trampolines_new(uint64_t start, const struct trampolines_run *runs, size_t count)
{
	struct trampolines *t = malloc(sizeof(*t) + count * sizeof(*runs));

	if (!t)
		return NULL;
	*t = (struct trampolines){.references = 1, .start = start, .count = count};
	if (count)
		memcpy(t->run, runs, count * sizeof(*runs));
	return t;
}

struct trampolines *trampolines_ref(struct trampolines *t)
{
	t->references++;
	return t;
}

void trampolines_unref(struct trampolines *t)
{
	if (t && --t->references == 0)
		free(t);
}

size_t trampolines_bytes(const struct trampolines *t)
{
	return t ? sizeof(*t) + t->count * sizeof(t->run[0]) : 0;
}

const struct cfi_rule *trampolines_rule(const struct trampolines *t, uint64_t address, uint16_t e_machine)
{
	const uint64_t offset = address + 1 - t->start;

	for (size_t i = 0; i < t->count; i++) {
		const struct trampolines_run *run = &t->run[i];

		if (offset >= run->first && (offset - run->first) % run->stride == 0 &&
		    (offset - run->first) / run->stride < run->count &&
		    kinds[run->kind].e_machine == e_machine)
			return &kinds[run->kind].rule;
	}
	return &cfi_no_rule;
}

/* ---- of a process */

struct found {
	uint64_t start, bytes;
	uint16_t e_machine;
	size_t count;
	struct trampolines_run run[TRAMPOLINES_RUNS_MAX];
};

/* Reads as much as can be read. */
static size_t read_code(pid_t pid, uint8_t *code, size_t bytes, uint64_t address)
{
	char path[PROC_PATH_BYTES];
	int fd = open(proc_path(path, pid, "mem"), O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got = 1;

	while (fd >= 0 && length < bytes && got > 0) {
		got = pread(fd, code + length, bytes - length, (off_t)(address + length));
		length += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	return length;
}

/* Runs in a child. */
static void find_in_process(pid_t pid, void *result)
{
	struct found *found = result;
	uint8_t *code = malloc(found->bytes);

	if (code)
		found->count = trampolines_find(
		    found->e_machine, code, read_code(pid, code, found->bytes, found->start), found->run);
	free(code);
}

struct trampolines *trampolines_read(pid_t pid, uint64_t start, uint64_t end)
{
	struct found found = {
	    .start = start,
	    .bytes = end - start < TRAMPOLINES_BYTES_MAX ? end - start : TRAMPOLINES_BYTES_MAX,
	    .e_machine = regs_arch_native()->e_machine,
	};
	const int error = memory_reader_run(find_in_process, pid, &found, sizeof(found));

	if (error == -EBUSY || error == -ENOMEM)
		return NULL;
	return trampolines_new(start, found.run, error ? 0 : found.count);
}
