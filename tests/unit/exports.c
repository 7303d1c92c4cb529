/* SPDX-License-Identifier: Apache-2.0 */
/* What an object in memory exports, where the memory is forged: its tables say what they like. */
#include "sampler/attach/exports.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SYMBOLS_MOST = 1 << 20, NAME_AT = 1 };

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

/* No bucket leads to a symbol: then there are as many as the table begins after. They cost nothing here. */
static struct object *forge(uint32_t count, size_t *bytes)
{
	*bytes = 4096 + (size_t)count * sizeof(Elf64_Sym);
	struct object *object =
	    mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(object, MAP_FAILED);
	*object = (struct object){
	    .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	        .e_phnum = 2,
	        .e_phentsize = sizeof(Elf64_Phdr),
	        .e_phoff = offsetof(struct object, segments)},
	    .segments = {{.p_type = PT_LOAD, .p_memsz = *bytes},
	        {.p_type = PT_DYNAMIC, .p_vaddr = offsetof(struct object, dynamic)}},
	    .dynamic = {{DT_SYMTAB, {4096}}, {DT_STRTAB, {offsetof(struct object, strings)}},
	        {DT_STRSZ, {sizeof(strings)}}, {DT_GNU_HASH, {offsetof(struct object, hash)}}},
	    .hash = {.buckets = 1, .first = count, .bloom_words = 1},
	};
	memcpy(object->strings, strings, sizeof(strings));
	Elf64_Sym *symbols = (Elf64_Sym *)((char *)object + 4096);
	symbols[count - 1] = (Elf64_Sym){.st_name = NAME_AT,
	    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	    .st_shndx = 1,
	    .st_value = 16};
	return object;
}

static int read_forged(uint32_t count, uint64_t *address)
{
	struct address_space space;
	struct exports exports;
	size_t bytes;
	struct object *object = forge(count, &bytes);
	assert_int_equal(address_space_open(&space, getpid()), 0);
	int error = exports_read(&exports, &space, (uintptr_t)object);
	*address = exports_address(&exports, "the_function");
	*address -= *address ? (uintptr_t)object : 0;
	exports_free(&exports);
	address_space_close(&space);
	munmap(object, bytes);
	return error;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_number_of_symbols_has_a_bound),
	};
	return cmocka_run_group_tests_name("exports", tests, NULL, NULL);
}
