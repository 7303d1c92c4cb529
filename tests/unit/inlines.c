/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/symbol/inlines.h"
#include "sampler/symbol/units.h"
#include "tests/unit/workshop.h"

#define INLINE     "static inline __attribute__((always_inline)) int "
#define MARK(name) "__asm__ volatile(\".globl " name "\\n" name ": nop\");"

/* GNU C's nested functions lie inside another function's DIE, but not inside its addresses. */
static const char source[] =
    "__attribute__((noinline)) int g(int (*f)(int)) { return f(1) + f(2); }\n" INLINE
    "leaf(int x) { " MARK("in_leaf") " return x; }\n" INLINE "twig(int x) {\n"
                                     "	return leaf(x) + 1;\n"
                                     "}\n"
                                     "int outer(int n) {\n"
                                     "	{\n"
                                     "		int inner(int x) { return twig(x) + n; }\n"
                                     "		" MARK("in_outer") "\n"
                                                                   "		return g(inner) + n;\n"
                                                                   "	}\n"
                                                                   "}\n"
                                                                   "int main(int c, char **v) { " MARK(
                                                                       "in_main") " return outer(c); }\n";

struct opened {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	struct extents extents;
};

static void opened_open(struct opened *opened, const char *path)
{
	elf_version(EV_CURRENT);
	opened->fd = open(path, O_RDONLY | O_CLOEXEC);
	opened->elf = elf_begin(opened->fd, ELF_C_READ, NULL);
	opened->dwarf = dwarf_begin_elf(opened->elf, DWARF_C_READ, NULL);
	assert_non_null(opened->dwarf);
	extents_read(&opened->extents, opened->elf);
}

static void opened_close(struct opened *opened)
{
	dwarf_end(opened->dwarf);
	elf_end(opened->elf);
	close(opened->fd);
}

static uint64_t address_of(const struct workshop *shop, const char *symbol)
{
	unsigned long long vaddr = 0;
	FILE *file;

	assert_int_equal(workshop_run(shop, "nm program | grep ' %s$' | head -n 1 >address", symbol), 0);
	file = fopen(workshop_path(shop, "address"), "r");
	assert_int_equal(fscanf(file, "%llx", &vaddr), 1);
	fclose(file);
	return vaddr;
}

/* The names of a chain, innermost first: "leaf twig inner". */
static const char *chain_of(const struct inlines *inlines, int32_t node)
{
	static char text[256];

	text[0] = '\0';
	for (; node != INLINES_NONE; node = inlines->nodes[node].parent) {
		strcat(text, text[0] ? " " : "");
		strcat(text, inlines_name(&inlines->nodes[node]));
	}
	return text;
}

static void chains_are_found_in_nested_functions_too(void **state)
{
	static const char *const commands[] = {
	    "gcc -O2 -g", "gcc -O2 -g -gdwarf-4", "gcc -O1 -g -fno-pie -no-pie"};

	assert_true(workshop_write(*state, "program.c", source));
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		static const char *const symbols[] = {"in_leaf", "in_outer", "in_main"};
		static const char *const chains[] = {"leaf twig inner", "outer", "main"};
		struct unit_facts facts;
		struct opened opened;
		Dwarf_Off unit;
		uint32_t line;
		uint64_t file;
		Dwarf_Die die;

		assert_int_equal(workshop_run(*state, "%s program.c -o program", commands[i]), 0);
		opened_open(&opened, workshop_path(*state, "program"));
		for (int mark = 0; mark < 3; mark++) {
			uint64_t vaddr = address_of(*state, symbols[mark]);
			struct inlines inlines;

			assert_int_equal(
			    units_assign(opened.dwarf, &opened.extents, &vaddr, 1, &unit, &facts), 0);
			assert_true(facts.any && facts.any_lines && unit != 0);
			assert_non_null(dwarf_offdie(opened.dwarf, unit, &die));
			assert_int_equal(inlines_init(&inlines, &die, &vaddr, 1), 0);
			assert_memory_equal(
			    chain_of(&inlines, inlines.innermost[0]), chains[mark], strlen(chains[mark]));
			if (mark == 0) {
				inlines_call(&inlines.nodes[inlines.innermost[0]], &file, &line);
				assert_int_equal(line, 4);
				assert_int_equal(inlines_start_line(&inlines.nodes[inlines.innermost[0]]), 2);
			}
			inlines_fini(&inlines);
		}
		opened_close(&opened);
	}
}

/* Functions that the linker drops are at address 0 or 1 in the DWARF; a unit there must not claim anything.
 */
static void dropped_functions_claim_nothing(void **state)
{
	static const char *const linkers[] = {"bfd", "gold"};

	assert_true(workshop_write(*state, "program.c",
	    "int unused(int x) { return x * 3; }\n"
	    "int main(void) { return 0; }\n"));
	for (int i = 0; i < 2; i++) {
		uint64_t vaddrs[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
		Dwarf_Off units[9];
		struct unit_facts facts;
		struct opened opened;

		if (workshop_run(*state,
		        "gcc -g -O1 -ffunction-sections -Wl,--gc-sections -fuse-ld=%s program.c -o "
		        "program",
		        linkers[i]) != 0) {
			print_message("# no linker %s\n", linkers[i]);
			continue;
		}
		opened_open(&opened, workshop_path(*state, "program"));
		assert_int_equal(units_assign(opened.dwarf, &opened.extents, vaddrs, 9, units, &facts), 0);
		assert_true(facts.any);
		for (int at = 0; at < 9; at++)
			assert_int_equal(units[at], 0);
		opened_close(&opened);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(chains_are_found_in_nested_functions_too),
	    cmocka_unit_test(dropped_functions_claim_nothing),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
