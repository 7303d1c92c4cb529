/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/symbol/symtab.h"
#include "tests/unit/workshop.h"

struct row {
	uint64_t start, size;
	unsigned bind, type;
	uint64_t section_end;
	const char *name;
};

static struct symtab *table_of(const struct row *rows, size_t count)
{
	const struct extents extents = {.range = {{0x1000, 0x9000}, {0x20000, 0x21000}}, .count = 2};
	struct symtab *symtab = symtab_new(&extents);

	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol = {.st_value = rows[i].start,
		    .st_size = rows[i].size,
		    .st_shndx = 1,
		    .st_info = ELF64_ST_INFO(rows[i].bind, rows[i].type)};

		assert_true(symtab_add(symtab, &symbol, rows[i].section_end, rows[i].name) >= 0);
	}
	symtab_sort(symtab);
	return symtab;
}

static void expect(const struct symtab *symtab, uint64_t vaddr, const char *name)
{
	const struct symtab_entry *entry = symtab_find(symtab, vaddr);

	if (!name)
		assert_null(entry);
	else
		assert_string_equal(entry ? entry->name : "(nothing)", name);
}

static void a_sized_symbol_covers_its_bytes_only(void **state)
{
	static const struct row rows[] = {
	    {0x3000, 0x10, STB_GLOBAL, STT_FUNC, 0, "second"},
	    {0x2000, 0x100, STB_GLOBAL, STT_FUNC, 0, "first"},
	};
	struct symtab *symtab = table_of(rows, 2);

	expect(symtab, 0x1fff, NULL);
	expect(symtab, 0x2000, "first");
	expect(symtab, 0x20ff, "first");
	expect(symtab, 0x2100, NULL);
	expect(symtab, 0x300f, "second");
	expect(symtab, 0x3010, NULL);
	expect(symtab, 0, NULL);
	expect(symtab, UINT64_MAX, NULL);
	symtab_free(symtab);
}

static void an_unsized_symbol_ends_with_the_next_its_section_and_its_segment(void **state)
{
	static const struct row rows[] = {
	    {0x2000, 0, STB_GLOBAL, STT_FUNC, 0, "label"},
	    {0x2100, 0x10, STB_GLOBAL, STT_FUNC, 0, "next"},
	    {0x3000, 0, STB_GLOBAL, STT_FUNC, 0x3020, "_init"},
	    {0x8000, 0, STB_GLOBAL, STT_FUNC, 0, "last"},
	};
	struct symtab *symtab = table_of(rows, 4);

	expect(symtab, 0x20ff, "label");
	expect(symtab, 0x2110, NULL);
	expect(symtab, 0x301f, "_init");
	expect(symtab, 0x3020, NULL);
	expect(symtab, 0x8fff, "last");
	expect(symtab, 0x9000, NULL);
	expect(symtab, 0x20000, NULL);
	symtab_free(symtab);
}

static void the_innermost_symbol_wins(void **state)
{
	static const struct row rows[] = {
	    {0x2000, 0x1000, STB_GLOBAL, STT_FUNC, 0, "outer"},
	    {0x2100, 0x100, STB_LOCAL, STT_FUNC, 0, "inner"},
	    {0x2180, 0, STB_LOCAL, STT_FUNC, 0, "label"},
	    {0x2300, 0, STB_LOCAL, STT_FUNC, 0, "late_label"},
	};
	struct symtab *symtab = table_of(rows, 4);

	expect(symtab, 0x20ff, "outer");
	expect(symtab, 0x2150, "inner");
	expect(symtab, 0x2190, "inner");
	expect(symtab, 0x2200, "outer");
	expect(symtab, 0x2310, "outer");
	symtab_free(symtab);
}

static void aliases_are_ranked_whatever_their_order(void **state)
{
	static const struct row rows[] = {
	    {0x2000, 0x10, STB_LOCAL, STT_FUNC, 0, "local"},
	    {0x2000, 0x10, STB_WEAK, STT_FUNC, 0, "weak"},
	    {0x2000, 0x10, STB_GLOBAL, STT_FUNC, 0, "__global"},
	    {0x2000, 0x10, STB_GLOBAL, STT_FUNC, 0, "global"},
	    {0x2000, 0x10, STB_GLOBAL, STT_FUNC, 0, "globally"},
	    {0x2000, 0x20, STB_GLOBAL, STT_NOTYPE, 0, "g"},
	    {0x2000, 0, STB_GLOBAL, STT_FUNC, 0, "h"},
	};
	struct row order[7];

	for (size_t turn = 0; turn < 7; turn++) {
		struct symtab *symtab;

		for (size_t i = 0; i < 7; i++)
			order[i] = rows[(i + turn) % 7];
		symtab = table_of(order, 7);
		assert_int_equal(symtab_count(symtab), 1);
		expect(symtab, 0x2000, "global");
		expect(symtab, 0x201f, "global");
		expect(symtab, 0x2020, NULL);
		symtab_free(symtab);
	}
}

static void only_code_is_taken(void **state)
{
	static const struct row rows[] = {
	    {0x2000, 0x10, STB_GLOBAL, STT_OBJECT, 0, "data"},
	    {0x2000, 0, STB_GLOBAL, STT_NOTYPE, 0, "marker"},
	    {0x2000, 0x10, STB_LOCAL, STT_SECTION, 0, ".text"},
	    {0x500, 0x10, STB_GLOBAL, STT_FUNC, 0, "outside"},
	    {0x2000, 0x10, STB_GLOBAL, STT_FUNC, 0, ""},
	    {0x3000, 0x10, STB_GLOBAL, STT_GNU_IFUNC, 0, "ifunc"},
	    {0x4000, 0x10, STB_LOCAL, STT_NOTYPE, 0, "assembler"},
	};
	struct symtab *symtab = table_of(rows, 7);

	assert_int_equal(symtab_count(symtab), 2);
	expect(symtab, 0x2000, NULL);
	expect(symtab, 0x3000, "ifunc");
	expect(symtab, 0x4000, "assembler");
	symtab_free(symtab);
}

static void sizes_do_not_leave_the_segment(void **state)
{
	static const struct row rows[] = {
	    {0x8f00, UINT64_MAX, STB_GLOBAL, STT_FUNC, 0, "endless"},
	    {0x20000, 0x10, STB_GLOBAL, STT_FUNC, 0, "other"},
	};
	struct symtab *symtab = table_of(rows, 2);

	expect(symtab, 0x8fff, "endless");
	expect(symtab, 0x9000, NULL);
	expect(symtab, 0x20008, "other");
	expect(symtab, 0x20010, NULL);
	symtab_free(symtab);
}

struct object {
	Elf *elf;
	struct extents extents;
	struct symtab *all;
};

static struct symtab *table_of_object(const struct object *object, const uint64_t *vaddrs, size_t n)
{
	struct symtab *symtab = symtab_new(&object->extents);

	if (n > 0)
		assert_int_equal(symtab_want(symtab, vaddrs, n), 0);
	assert_true(symtab_add_elf(symtab, object->elf, SHT_SYMTAB) >= 0);
	assert_true(symtab_add_elf(symtab, object->elf, SHT_DYNSYM) >= 0);
	symtab_sort(symtab);
	return symtab;
}

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

enum { WANTED = 150 };

/* Anywhere in the code, and about the ends of some functions. */
static size_t some_addresses(const struct object *object, uint64_t vaddrs[WANTED])
{
	uint64_t start = object->extents.range[0].start, bytes = object->extents.range[0].end - start;
	size_t kept = 0;

	for (size_t i = 0; i < WANTED; i++) {
		const struct symtab_entry *entry;

		vaddrs[i] = start + (uint64_t)random() % bytes;
		entry = symtab_find(object->all, vaddrs[i]);
		if (entry && i % 2)
			vaddrs[i] = entry->start + (i % 4 == 1 ? 0 : entry->size) - (i % 8 < 4);
	}
	qsort(vaddrs, WANTED, sizeof(*vaddrs), ascending);
	for (size_t i = 0; i < WANTED; i++)
		if (kept == 0 || vaddrs[i] != vaddrs[kept - 1])
			vaddrs[kept++] = vaddrs[i];
	return kept;
}

/* Functions in functions, aliases of other sizes, and labels without any, as only assembler has them. */
static const char *tangled_library(struct workshop *shop)
{
	FILE *file = fopen(workshop_path(shop, "tangled.s"), "w");

	assert_non_null(file);
	fprintf(file, ".text\nstart: .skip 8192, 0x90\n.section .note.GNU-stack,\"\",@progbits\n");
	for (unsigned i = 0; i < 700; i++) {
		static const unsigned sizes[] = {0, 0, 4, 16, 100, 900};
		unsigned offset = 4 * ((unsigned)random() % 1800);

		fprintf(file, ".set s%u, start + %u\n.type s%u, @function\n.size s%u, %u\n", i, offset, i, i,
		    sizes[random() % 6]);
		fprintf(file, i % 3 ? ".globl s%u\n.hidden s%u\n" : ".local s%u\n", i, i);
	}
	assert_int_equal(fclose(file), 0);
	assert_int_equal(workshop_run(shop, "gcc -shared -nostdlib -o tangled.so tangled.s"), 0);
	return workshop_path(shop, "tangled.so");
}

/* Our own program, with its static symbols, the C library that it runs with, and a worse one. */
static void what_is_wanted_is_answered_as_by_the_whole_table(void **state)
{
	Dl_info library;
	const char *paths[] = {"/proc/self/exe", NULL, tangled_library(*state)};

	assert_true(dladdr((void *)&qsort, &library));
	paths[1] = library.dli_fname;
	elf_version(EV_CURRENT);
	for (size_t file = 0; file < sizeof(paths) / sizeof(paths[0]); file++) {
		int fd = open(paths[file], O_RDONLY | O_CLOEXEC);
		struct object object = {.elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL)};
		size_t named = 0;

		extents_read(&object.extents, object.elf);
		object.all = table_of_object(&object, NULL, 0);
		for (unsigned turn = 0; turn < 50; turn++) {
			uint64_t vaddrs[WANTED];
			size_t n = some_addresses(&object, vaddrs);
			struct symtab *some = table_of_object(&object, vaddrs, n);

			assert_true(symtab_count(some) < symtab_count(object.all) + (file != 1));
			for (size_t i = 0; i < n; i++) {
				const struct symtab_entry *expected = symtab_find(object.all, vaddrs[i]);

				expect(some, vaddrs[i], expected ? expected->name : NULL);
				named += expected != NULL;
			}
			symtab_free(some);
		}
		assert_true(named > 1000);
		symtab_free(object.all);
		elf_end(object.elf);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_sized_symbol_covers_its_bytes_only),
	    cmocka_unit_test(an_unsized_symbol_ends_with_the_next_its_section_and_its_segment),
	    cmocka_unit_test(the_innermost_symbol_wins),
	    cmocka_unit_test(aliases_are_ranked_whatever_their_order),
	    cmocka_unit_test(only_code_is_taken),
	    cmocka_unit_test(sizes_do_not_leave_the_segment),
	    cmocka_unit_test(what_is_wanted_is_answered_as_by_the_whole_table),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
