/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/exports.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEGMENTS_MOST = 64,
	DYNAMIC_MOST = 512,
	SYMBOLS_MOST = 1 << 20,
	STRINGS_MOST = 64 << 20,
	CHAIN_PIECE = 1024, /* entries */
};

struct dynamic {
	uint64_t symbols, strings, strings_bytes, gnu_hash, sysv_hash;
};

/* glibc's loader has replaced these offsets by addresses. */
static uint64_t address_of(uint64_t bias, uint64_t value)
{
	return value < bias ? bias + value : value;
}

static int read_dynamic(
    const struct address_space *space, uint64_t bias, uint64_t address, struct dynamic *dynamic)
{
	for (int i = 0; i < DYNAMIC_MOST; i++) {
		Elf64_Dyn entry;

		if (address_space_read(space, address + (uint64_t)i * sizeof(entry), &entry, sizeof(entry)))
			return -EFAULT;
		uint64_t value = entry.d_un.d_val;
		if (entry.d_tag == DT_NULL)
			return 0;
		if (entry.d_tag == DT_SYMTAB)
			dynamic->symbols = address_of(bias, value);
		else if (entry.d_tag == DT_STRTAB)
			dynamic->strings = address_of(bias, value);
		else if (entry.d_tag == DT_STRSZ)
			dynamic->strings_bytes = value;
		else if (entry.d_tag == DT_GNU_HASH)
			dynamic->gnu_hash = address_of(bias, value);
		else if (entry.d_tag == DT_HASH)
			dynamic->sysv_hash = address_of(bias, value);
	}
	return -ENOEXEC;
}

/* Reads in pieces: the process may lie about the length of a chain. */
static uint64_t count_by_last_chain(
    const struct address_space *space, uint64_t chains_at, uint32_t first, uint32_t last)
{
	uint32_t piece[CHAIN_PIECE];

	while (last < SYMBOLS_MOST) {
		const uint64_t at = chains_at + (uint64_t)(last - first) * sizeof(*piece);
		const size_t got = address_space_read_some(space, at, piece, sizeof(piece)) / sizeof(*piece);

		for (size_t i = 0; i < got && last < SYMBOLS_MOST; i++, last++)
			if (piece[i] & 1)
				return last + 1;
		if (got < CHAIN_PIECE && last < SYMBOLS_MOST)
			return last + 1;
	}
	return 0;
}

/* No table tells the number of symbols. But the last chain of the hash table ends with the last symbol. */
static uint64_t count_by_gnu_hash(const struct address_space *space, uint64_t table)
{
	uint32_t head[4], last = 0;

	if (address_space_read(space, table, head, sizeof(head)) || head[0] > SYMBOLS_MOST ||
	    head[2] > SYMBOLS_MOST)
		return 0;
	uint64_t buckets_at = table + sizeof(head) + head[2] * sizeof(uint64_t);
	uint64_t chains_at = buckets_at + head[0] * sizeof(uint32_t);
	uint32_t *buckets = calloc(head[0] + 1, sizeof(*buckets));
	if (buckets && !address_space_read(space, buckets_at, buckets, head[0] * sizeof(*buckets)))
		for (uint32_t i = 0; i < head[0]; i++)
			last = buckets[i] > last ? buckets[i] : last;
	free(buckets);
	if (last < head[1])
		return head[1] <= SYMBOLS_MOST ? head[1] : 0;
	return count_by_last_chain(space, chains_at, head[1], last);
}

static uint64_t count_symbols(const struct address_space *space, const struct dynamic *dynamic)
{
	uint32_t head[2];

	if (dynamic->gnu_hash)
		return count_by_gnu_hash(space, dynamic->gnu_hash);
	if (dynamic->sysv_hash && !address_space_read(space, dynamic->sysv_hash, head, sizeof(head)) &&
	    head[1] <= SYMBOLS_MOST)
		return head[1];
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct export *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void take_symbols(
    struct exports *exports, const Elf64_Sym *symbols, uint64_t count, uint64_t strings_bytes, uint64_t bias)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t type = ELF64_ST_TYPE(symbols[i].st_info);

		if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= strings_bytes ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_OBJECT) || !symbols[i].st_value)
			continue;
		uint64_t start = bias + symbols[i].st_value;
		exports->list[exports->count++] =
		    (struct export){exports->strings + symbols[i].st_name, start, start + symbols[i].st_size};
	}
	qsort(exports->list, exports->count, sizeof(*exports->list), compare);
}

static int read_symbols(
    struct exports *exports, const struct address_space *space, const struct dynamic *dynamic, uint64_t bias)
{
	uint64_t count = count_symbols(space, dynamic), bytes = dynamic->strings_bytes;

	if (!count || !dynamic->symbols || !dynamic->strings || !bytes || bytes > STRINGS_MOST)
		return -ENOEXEC;
	Elf64_Sym *symbols = calloc(count, sizeof(*symbols));
	exports->strings = malloc(bytes + 1);
	exports->list = calloc(count, sizeof(*exports->list));
	int error = symbols && exports->strings && exports->list ? 0 : -ENOMEM;
	if (!error)
		error = address_space_read(space, dynamic->symbols, symbols, count * sizeof(*symbols));
	if (!error)
		error = address_space_read(space, dynamic->strings, exports->strings, bytes);
	if (!error) {
		exports->strings[bytes] = '\0';
		take_symbols(exports, symbols, count, bytes, bias);
	}
	free(symbols);
	return error;
}

int exports_read(struct exports *exports, const struct address_space *space, uint64_t base)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[SEGMENTS_MOST];
	struct dynamic dynamic = {0};
	uint64_t bias = base, dynamic_at = 0;

	*exports = (struct exports){.low = UINT64_MAX};
	if (address_space_read(space, base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phnum > SEGMENTS_MOST || header.e_phentsize != sizeof(segments[0]) ||
	    address_space_read(space, base + header.e_phoff, segments, header.e_phnum * sizeof(segments[0])))
		return -ENOEXEC;
	for (int i = 0; i < header.e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
			bias = base - segments[i].p_vaddr;
	for (int i = 0; i < header.e_phnum; i++) {
		uint64_t start = bias + segments[i].p_vaddr, end = start + segments[i].p_memsz;

		if (segments[i].p_type == PT_DYNAMIC)
			dynamic_at = start;
		if (segments[i].p_type != PT_LOAD)
			continue;
		exports->low = start < exports->low ? start : exports->low;
		exports->high = end > exports->high ? end : exports->high;
	}
	int error = dynamic_at ? read_dynamic(space, bias, dynamic_at, &dynamic) : -ENOEXEC;
	return error ? error : read_symbols(exports, space, &dynamic, bias);
}

void exports_free(struct exports *exports)
{
	free(exports->list);
	free(exports->strings);
	*exports = (struct exports){.low = 0};
}

uint64_t exports_address(const struct exports *exports, const char *name)
{
	for (size_t i = 0; i < exports->count; i++)
		if (strcmp(exports->list[i].name, name) == 0)
			return exports->list[i].start;
	return 0;
}

const struct export *exports_at(const struct exports *exports, uint64_t address)
{
	size_t low = 0, high = exports->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (exports->list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; low > 0 && back < 16; back++, low--)
		if (address < exports->list[low - 1].end)
			return &exports->list[low - 1];
	return NULL;
}
