/* SPDX-License-Identifier: Apache-2.0 */
/* A file whose debug info has more names than its reader has memory for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/symbol/symbol.h"
#include "tests/unit/workshop.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FUNCTIONS = 12, DEPTH = 240 };

/* FUNCTIONS functions, in each a chain of DEPTH inlined ones. Then .debug_str loses the ends of its strings:
 * each name goes on to its end, and is as long as a name may be. */
static const char make_source[] =
    "awk 'BEGIN { for (i = 0; i < %d; i++) {"
    "  s = \"static inline __attribute__((always_inline)) void a_name_of_some_length_\" i \"_\";"
    "  print s \"0(void) { __asm__ volatile(\\\"mark_\" i \": nop\\\"); }\";"
    "  for (k = 1; k < %d; k++)"
    "    print s k \"(void) { a_name_of_some_length_\" i \"_\" k - 1 \"(); }\";"
    "  print \"__attribute__((noinline)) void plain_\" i \"(void) { a_name_of_some_length_\" i \"_\" k - 1 "
    "\"(); }\""
    "} print \"int main(void) { return 0; }\" }' >long.c";
static const char make_long[] =
    "gcc -O1 -g -o short long.c && objcopy --dump-section .debug_str=names short && "
    "tr '\\0' x <names >joined && printf '\\0' >>joined && "
    "objcopy --update-section .debug_str=joined short long && nm long >symbols";

static void too_many_names_leave_the_symbols(void **state)
{
	const struct workshop *shop = *state;
	const struct symbol_options full = {.detail = SYMBOL_FULL, .debug_root = "/nonexistent"};
	struct symbol_result results[FUNCTIONS];
	struct symbol_facts facts;
	uint64_t vaddrs[FUNCTIONS] = {0};
	char line[256];

	assert_int_equal(workshop_run(shop, make_source, FUNCTIONS, DEPTH), 0);
	assert_int_equal(workshop_run(shop, make_long), 0);
	FILE *file = fopen(workshop_path(shop, "symbols"), "r");
	while (fgets(line, sizeof(line), file)) {
		unsigned long long vaddr;
		unsigned int i;
		if (sscanf(line, "%llx t mark_%u", &vaddr, &i) == 2 && i < FUNCTIONS)
			vaddrs[i] = vaddr;
	}
	fclose(file);
	struct symbol_file large = {
	    .fd = open(workshop_path(shop, "long"), O_RDONLY | O_CLOEXEC), .path = "long"};
	struct symbols *symbols = symbols_new(&full);
	/* One of them is not too much. */
	assert_int_equal(symbols_resolve(symbols, &large, vaddrs, 1, results, &facts), 0);
	assert_in_range(results[0].frame_count, 100, DEPTH + 1);
	assert_int_equal(symbols_resolve(symbols, &large, vaddrs, FUNCTIONS, results, &facts), 0);
	assert_int_equal(facts.source, SYMBOL_SYMTAB);
	for (int i = 0; i < FUNCTIONS; i++) {
		assert_true(results[i].known);
		assert_int_equal(results[i].frame_count, 1);
	}
	symbols_free(symbols);
	close(large.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(too_many_names_leave_the_symbols),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
