/* SPDX-License-Identifier: Apache-2.0 */
/* What an object in memory exports, where the memory is forged: its tables say what they like. */
#include "sampler/inject/exports.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SYMBOLS_MOST = 1 << 20, NAME_AT = 1, PAGE = 4096 };

static const char strings[] = "\0the_function";

/* The beginning of an object with one function, which is its last symbol; its symbols follow a page later. */
struct object {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[5];
	struct {
		uint32_t buckets, first, bloom_words, bloom_shift;
		uint64_t bloom;
		uint32_t bucket;
	} hash;
	char strings[sizeof(strings)];
};

/* No bucket leads to a symbol: then there are as many as the table begins after. They cost nothing here.
 * Behind them is room, and then nothing is mapped. */
static struct object *forge(uint32_t count, size_t room, size_t *bytes)
{
	*bytes = (PAGE + (size_t)count * sizeof(Elf64_Sym) + room + PAGE - 1) / PAGE * PAGE;
	struct object *object = mmap(
	    NULL, *bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(object, MAP_FAILED);
	assert_int_equal(munmap((char *)object + *bytes, PAGE), 0);
	*object = (struct object){
	    .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	        .e_phnum = 2,
	        .e_phentsize = sizeof(Elf64_Phdr),
	        .e_phoff = offsetof(struct object, segments)},
	    .segments = {{.p_type = PT_LOAD, .p_memsz = *bytes},
	        {.p_type = PT_DYNAMIC, .p_vaddr = offsetof(struct object, dynamic)}},
	    .dynamic = {{DT_SYMTAB, {PAGE}}, {DT_STRTAB, {offsetof(struct object, strings)}},
	        {DT_STRSZ, {sizeof(strings)}}, {DT_GNU_HASH, {offsetof(struct object, hash)}}},
	    .hash = {.buckets = 1, .first = count, .bloom_words = 1},
	};
	memcpy(object->strings, strings, sizeof(strings));
	Elf64_Sym *symbols = (Elf64_Sym *)((char *)object + PAGE);
	symbols[count - 1] = (Elf64_Sym){.st_name = NAME_AT,
	    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	    .st_shndx = 1,
	    .st_value = 16};
	return object;
}

/* One bucket leads to the symbols from the first on. Its chain has a word for each of them, up to the end of
 * what is mapped; the last word says that it is the last, if `ends`. */
static struct object *forge_chain(uint32_t count, bool ends, size_t *bytes)
{
	const size_t head_bytes =
	    offsetof(struct object, hash.bucket) + sizeof(uint32_t) - offsetof(struct object, hash);
	const size_t table_bytes = head_bytes + (size_t)(count - 1) * sizeof(uint32_t);
	struct object *object = forge(count, table_bytes, bytes);
	char *end = (char *)object + *bytes;

	object->dynamic[3].d_un.d_val = *bytes - table_bytes;
	object->hash.first = object->hash.bucket = 1;
	memcpy(end - table_bytes, &object->hash, head_bytes);
	end[-(ptrdiff_t)sizeof(uint32_t)] = ends;
	return object;
}

static int read_object(struct object *object, uint64_t *address)
{
	struct address_space space;
	struct exports exports;

	assert_int_equal(address_space_open(&space, getpid()), 0);
	int error = exports_read(&exports, &space, (uintptr_t)object);
	*address = exports_address(&exports, "the_function");
	*address -= *address ? (uintptr_t)object : 0;
	exports_free(&exports);
	address_space_close(&space);
	return error;
}

static int read_forged(uint32_t count, uint64_t *address)
{
	size_t bytes;
	struct object *object = forge(count, 0, &bytes);
	int error = read_object(object, address);

	munmap(object, bytes);
	return error;
}

static int read_chained(uint32_t count, bool ends, uint64_t *address)
{
	size_t bytes;
	struct object *object = forge_chain(count, ends, &bytes);
	int error = read_object(object, address);

	munmap(object, bytes);
	return error;
}

/* System calls of this process that read. */
static long reads(void)
{
	char line[64];
	long count = -1;
	FILE *file = fopen("/proc/self/io", "r");

	while (file && count < 0 && fgets(line, sizeof(line), file))
		(void)sscanf(line, "syscr: %ld", &count);
	if (file)
		fclose(file);
	return count;
}

/* 48 bytes here for each symbol that the table claims, and as many pages are read as it likes. */
static void the_number_of_symbols_has_a_bound(void **state)
{
	uint64_t address;

	(void)state;
	assert_int_equal(read_forged(7, &address), 0);
	assert_int_equal(address, 16);
	assert_int_equal(read_forged(SYMBOLS_MOST, &address), 0);
	assert_int_equal(address, 16);
	assert_int_equal(read_forged(SYMBOLS_MOST + 1, &address), -ENOEXEC);
	assert_int_equal(address, 0);
}

/* How long a chain is, is the process' word, and the daemon's loop waits meanwhile. */
static void a_chain_is_read_in_pieces(void **state)
{
	/* one word, around a piece, and up to the bound */
	static const uint32_t counts[] = {2, 1024, 1025, 1026, 5000, SYMBOLS_MOST - 1, SYMBOLS_MOST};
	uint64_t address;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		assert_int_equal(read_chained(counts[i], true, &address), 0);
		assert_int_equal(address, 16);
	}
	/* Or it ends with what can be read. */
	assert_int_equal(read_chained(1026, false, &address), 0);
	assert_int_equal(address, 16);
	const long before = reads();
	assert_int_equal(read_chained(SYMBOLS_MOST + 100, false, &address), -ENOEXEC);
	if (before < 0) {
		print_message("reads are not counted here\n");
		skip();
	}
	assert_in_range(reads() - before, 1, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_number_of_symbols_has_a_bound),
	    cmocka_unit_test(a_chain_is_read_in_pieces),
	};

	return cmocka_run_group_tests_name("exports", tests, NULL, NULL);
}
