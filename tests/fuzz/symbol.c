/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything hostile that symbols are made from: ELF and DWARF files, and, when the input does not begin like
 * an ELF file, by its first byte: encoded symbols, a perf map, a mangled name.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/symbol/demangle.h"
#include "sampler/symbol/perfmap.h"
#include "sampler/symbol/symbol.h"
#include "sampler/symbol/symcodec.h"
#include "sampler/symbol/symtab.h"

enum { ADDRESSES_MAX = 64 };

/* Evenly over the executable segments. */
static size_t choose_addresses(int fd, uint64_t *vaddrs)
{
	struct extents extents = {0};
	Elf *elf;
	size_t count = 0;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (elf)
		extents_read(&extents, elf);
	elf_end(elf);
	for (unsigned i = 0; i < extents.count && i < 4; i++) {
		uint64_t bytes = extents.range[i].end - extents.range[i].start;

		for (uint64_t step = 0; step < ADDRESSES_MAX / 4; step++)
			vaddrs[count++] =
			    extents.range[i].start + bytes / (ADDRESSES_MAX / 4) * step + step % 3;
	}
	vaddrs[count++] = 0x1000;
	return count;
}

static void resolve(const uint8_t *data, size_t size)
{
	static const struct symbol_options options = {.detail = SYMBOL_FULL, .debug_root = "/nonexistent"};
	struct symbol_file file = {.fd = memfd_create("fuzz", MFD_CLOEXEC), .path = "/fuzz/file"};
	struct symbols *symbols = symbols_new(&options);
	struct symbol_result results[ADDRESSES_MAX + 1];
	uint64_t vaddrs[ADDRESSES_MAX + 1];
	struct symbol_facts facts;

	if (write(file.fd, data, size) == (ssize_t)size) {
		size_t count = choose_addresses(file.fd, vaddrs);

		if (symbols_resolve(symbols, &file, vaddrs, count, results, &facts) == 0)
			for (size_t i = 0; i < count; i++)
				for (uint32_t frame = 0; frame < results[i].frame_count; frame++)
					if (!results[i].frames[frame].name[0] ||
					    !results[i].frames[frame].system_name)
						abort();
	}
	symbols_free(symbols);
	close(file.fd);
}

static int each(void *arg, uint64_t vaddr, const struct symbol_result *result)
{
	for (uint32_t i = 0; i < result->frame_count; i++)
		*(size_t *)arg += strlen(result->frames[i].name) + strlen(result->frames[i].system_name);
	return 0;
}

static void parse_map(const char *text, size_t size)
{
	uint64_t addrs[0x400 / 7];
	const size_t count = sizeof(addrs) / sizeof(addrs[0]);

	for (size_t i = 0; i < count; i++)
		addrs[i] = i * 7;
	struct perfmap *map = perfmap_new(addrs, count);
	if (!map)
		return;
	(void)perfmap_take(map, text, size);
	for (size_t i = 0; i < count; i++)
		perfmap_find(map, addrs[i]);
	perfmap_free(map);
}

static void demangle(const uint8_t *data, size_t size)
{
	char *symbol = malloc(size + 1), name[DEMANGLE_NAME_MAX];

	memcpy(symbol, data, size);
	symbol[size] = '\0';
	demangle_name(symbol, name);
	if (strlen(name) >= DEMANGLE_NAME_MAX)
		abort();
	free(symbol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_facts facts;
	size_t length = 0;

	if (size >= 4 && memcmp(data, "\177ELF", 4) == 0)
		resolve(data, size);
	else if (size > 0 && data[0] % 3 == 0)
		symcodec_decode(data + 1, size - 1, &facts, each, &length);
	else if (size > 0 && data[0] % 3 == 1)
		parse_map((const char *)data + 1, size - 1);
	else if (size > 0)
		demangle(data + 1, size - 1);
	return 0;
}
