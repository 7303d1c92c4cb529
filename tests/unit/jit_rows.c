/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows from jitdump files: as CPython and V8 write them, replaced, moved, not whole yet, hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pprof/text/throttle.h"
#include "sampler/unwind/jit_rows.h"
#include "sampler/unwind/maps.h"
#include "sampler/unwind/module.h"

enum { CODE = 0x7000000000, CPYTHON_BYTES = 11, V8_BYTES = 252, RBP = 6, RSP = 7, RBP_TRACKED = 1 };

/* .eh_frame and .eh_frame_hdr of CPython 3.13.0 (-X perf_jit), of a function of 11 bytes. */
static const uint8_t cpython[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x7a, 0x52, 0x00, 0x01, 0x78, 0x10, 0x01,
    0x1b, 0x0c, 0x07, 0x08, 0x90, 0x01, 0, 0, 0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 0x0b, 0,
    0, 0, 0, 0x44, 0x0e, 0x10, 0x46, 0x0e, 0x08, 0, 0x01, 0x1b, 0x03, 0x3b, 0xcc, 0xff, 0xff, 0xff, 0x01, 0,
    0, 0, 0xc0, 0xff, 0xff, 0xff, 0xe8, 0xff, 0xff, 0xff};
/* Those of node 20 (--perf-prof-unwinding-info), of optimized code of 252 bytes. */
static const uint8_t v8[] = {0x18, 0, 0, 0, 0, 0, 0, 0, 0x03, 0x7a, 0x4c, 0x52, 0, 0x01, 0x78, 0x10, 0x02,
    0xff, 0x1b, 0x0c, 0x07, 0x08, 0x90, 0x01, 0, 0, 0, 0, 0x20, 0, 0, 0, 0x20, 0, 0, 0, 0xdc, 0xfe, 0xff,
    0xff, 0xfc, 0, 0, 0, 0, 0x4f, 0x0e, 0x10, 0x86, 0x02, 0x43, 0x0d, 0x06, 0x02, 0x6d, 0x0d, 0x07, 0x41,
    0x0e, 0x08, 0x52, 0x0c, 0x06, 0x10, 0, 0, 0, 0, 0x01, 0x1b, 0x03, 0x3b, 0xb8, 0xff, 0xff, 0xff, 0x01, 0,
    0, 0, 0xbc, 0xfe, 0xff, 0xff, 0xd8, 0xff, 0xff, 0xff};
enum { HEADER_BYTES = 20 };

static uint8_t *bytes;
static size_t length, capacity;
static struct jit_rows *rows;
static struct throttle budget;

static void put(const void *from, size_t n)
{
	while (length + n > capacity) {
		capacity = capacity ? 2 * capacity : 4096;
		bytes = realloc(bytes, capacity);
		assert_non_null(bytes);
	}
	if (from)
		memcpy(bytes + length, from, n);
	else
		memset(bytes + length, 0, n);
	length += n;
}

static void put_words(const uint64_t *words, size_t count)
{
	put(words, count * sizeof(*words));
}

static void put_prefix(uint32_t id, size_t payload)
{
	put_words((const uint64_t[]){(uint64_t)(16 + payload) << 32 | id, 0}, 2);
}

static void put_file_header(void)
{
	put_words((const uint64_t[]){UINT64_C(1) << 32 | 0x4a695444, UINT64_C(62) << 32 | 40, 0, 0, 0}, 5);
}

static void put_unwinding(const uint8_t *section, size_t n, uint64_t all, uint64_t header)
{
	put_prefix(4, 24 + n + 4);
	put_words((const uint64_t[]){all, header, (n + 15) / 16 * 16}, 3);
	put(section, n);
	put(NULL, 4);
}

static void put_rows(const uint8_t *section, size_t n)
{
	put_unwinding(section, n, n, HEADER_BYTES);
}

static void put_load(uint64_t start, uint64_t code_bytes)
{
	put_prefix(0, 40 + 8);
	put_words((const uint64_t[]){0, start, start, code_bytes, 1, 'f'}, 6);
}

static void put_move(uint64_t from, uint64_t to, uint64_t code_bytes)
{
	put_prefix(1, 48);
	put_words((const uint64_t[]){0, to, from, to, code_bytes, 1}, 6);
}

static int begin(void **state)
{
	(void)state;
	length = 0;
	budget = (struct throttle){0};
	put_file_header();
	return 0;
}

static int end(void **state)
{
	(void)state;
	jit_rows_unref(rows);
	rows = NULL;
	free(bytes);
	bytes = NULL;
	capacity = 0;
	return 0;
}

/* The bytes must not be added to afterwards. */
static void open_rows(void)
{
	struct module_file file = {.fd = -1, .memory = bytes, .bytes = length};

	jit_rows_unref(rows);
	rows = jit_rows_new(&file, EM_X86_64);
	assert_non_null(rows);
}

static bool take(void)
{
	open_rows();
	return jit_rows_read(rows, length, &budget);
}

static const struct cfi_rule *rule_at(uint64_t address)
{
	return jit_rows_rule(rows, address, EM_X86_64, &budget);
}

static void expect_rule(uint64_t address, unsigned cfa_reg, int cfa_offset)
{
	const struct cfi_rule *rule = rule_at(address);

	assert_int_equal(rule->kind, CFI_SIMPLE);
	assert_int_equal(rule->cfa_reg, cfa_reg);
	assert_int_equal(rule->cfa_offset, cfa_offset);
	assert_int_equal(rule->ra_offset, -8);
	/* It is kept, and needs no budget. */
	struct throttle spent = {-CFI_WORK_BURST, UINT64_MAX};
	assert_ptr_equal(jit_rows_rule(rows, address, EM_X86_64, &spent), rule);
}

static void expect_cpython(uint64_t start)
{
	expect_rule(start + 3, RSP, 8);
	expect_rule(start + 5, RSP, 16);
	expect_rule(start + 10, RSP, 8);
}

static void rows_of_cpython(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		put_rows(cpython, sizeof(cpython));
		put_load(CODE + i * 16 + i, CPYTHON_BYTES);
	}
	assert_true(take());
	for (uint64_t i = 0; i < 3; i++)
		expect_cpython(CODE + i * 16 + i);
	assert_ptr_equal(rule_at(CODE - 1), &cfi_no_rule);
	assert_ptr_equal(rule_at(CODE + CPYTHON_BYTES), &cfi_no_rule);
	assert_ptr_equal(rule_at(CODE + 34 + CPYTHON_BYTES), &cfi_no_rule);
	assert_ptr_equal(jit_rows_rule(rows, CODE + 5, EM_AARCH64, &budget), &cfi_no_rule);
}

/* Code that is not optimized has a header alone. */
static void rows_of_v8(void **state)
{
	(void)state;
	put_rows(v8 + sizeof(v8) - HEADER_BYTES, HEADER_BYTES);
	put_load(CODE + 1024, V8_BYTES);
	put_rows(v8, sizeof(v8));
	put_load(CODE, V8_BYTES);
	assert_true(take());
	expect_rule(CODE, RSP, 8);
	expect_rule(CODE + 16, RSP, 16);
	expect_rule(CODE + 20, RBP, 16);
	assert_int_equal(rule_at(CODE + 20)->saved, 1 << RBP_TRACKED);
	assert_int_equal(rule_at(CODE + 20)->offset[RBP_TRACKED], -16);
	assert_ptr_equal(rule_at(CODE + 1024 + 20), &cfi_no_rule);
}

/* Also over a part of it; and rows are of the next code alone. */
static void the_newest_code_is_valid(void **state)
{
	(void)state;
	put_rows(cpython, sizeof(cpython));
	put_load(CODE, CPYTHON_BYTES);
	put_rows(v8, sizeof(v8));
	put_load(CODE + 64, V8_BYTES);
	const size_t first = length;
	put_load(CODE + 8, 16);
	put_rows(cpython, sizeof(cpython));
	put_load(CODE + 64, CPYTHON_BYTES);
	open_rows();
	assert_true(jit_rows_read(rows, first, &budget));
	expect_cpython(CODE);
	expect_rule(CODE + 64 + 5, RSP, 8);
	const uint64_t version = jit_rows_version(rows);
	assert_true(jit_rows_read(rows, length, &budget));
	assert_true(jit_rows_version(rows) > version);
	assert_ptr_equal(rule_at(CODE + 5), &cfi_no_rule);
	assert_ptr_equal(rule_at(CODE + 10), &cfi_no_rule);
	expect_cpython(CODE + 64);
	assert_ptr_equal(rule_at(CODE + 64 + 20), &cfi_no_rule);
	assert_false(jit_rows_read(rows, length, &budget));
}

static void moved_code_keeps_its_rows(void **state)
{
	(void)state;
	put_rows(cpython, sizeof(cpython));
	put_load(CODE, CPYTHON_BYTES);
	put_move(CODE, CODE + 99, CPYTHON_BYTES);
	put_move(CODE + 5000, CODE, CPYTHON_BYTES);
	assert_true(take());
	expect_cpython(CODE + 99);
	assert_ptr_equal(rule_at(CODE + 5), &cfi_no_rule);
}

static void what_is_not_whole_is_read_later(void **state)
{
	(void)state;
	put_rows(cpython, sizeof(cpython));
	put_load(CODE, CPYTHON_BYTES);
	open_rows();
	for (size_t n = 0; n < length; n++) {
		assert_false(jit_rows_read(rows, n, &budget));
		assert_ptr_equal(rule_at(CODE + 5), &cfi_no_rule);
	}
	assert_true(jit_rows_read(rows, length, &budget));
	expect_cpython(CODE);
	/* A file that is shorter now. */
	assert_false(jit_rows_read(rows, 50, &budget));
}

static void sizes_that_lie_are_not_believed(void **state)
{
	static const uint64_t sizes[][2] = {{sizeof(cpython) + 5, HEADER_BYTES}, {UINT64_MAX, HEADER_BYTES},
	    {sizeof(cpython), sizeof(cpython) + 1}, {sizeof(cpython), UINT64_MAX}, {sizeof(cpython), 60},
	    {HEADER_BYTES, HEADER_BYTES}, {0, 0}};
	static const uint64_t codes[][2] = {
	    {CODE, 0}, {CODE, UINT64_MAX}, {UINT64_MAX - 5, CPYTHON_BYTES}, {CODE, UINT64_C(1) << 31}};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		begin(NULL);
		put_unwinding(cpython, sizeof(cpython), sizes[i][0], sizes[i][1]);
		put_load(CODE, CPYTHON_BYTES);
		(void)take();
		assert_int_equal(rule_at(CODE + 5)->kind, CFI_NONE);
	}
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		begin(NULL);
		put_rows(cpython, sizeof(cpython));
		put_load(codes[i][0], codes[i][1]);
		assert_false(take());
		assert_ptr_equal(rule_at(codes[i][0] + 5), &cfi_no_rule);
	}
	/* A record that is smaller than its own header ends it, for good. */
	begin(NULL);
	put_words((const uint64_t[]){UINT64_C(15) << 32, 0}, 2);
	put_rows(cpython, sizeof(cpython));
	put_load(CODE, CPYTHON_BYTES);
	assert_false(take());
	assert_false(jit_rows_read(rows, length, &budget));
}

/* Whatever one byte is changed to, it ends, and the rules can be asked for. */
static void broken_bytes_do_no_harm(void **state)
{
	(void)state;
	put_rows(cpython, sizeof(cpython));
	put_load(CODE, CPYTHON_BYTES);
	put_rows(v8, sizeof(v8));
	put_load(CODE + 64, V8_BYTES);
	for (size_t at = 0; at < length; at++) {
		const uint8_t was = bytes[at];

		bytes[at] ^= (uint8_t)(0xff >> at % 7);
		(void)take();
		assert_non_null(rule_at(CODE + 5));
		assert_non_null(rule_at(CODE + 64 + 20));
		bytes[at] = was;
	}
}

static void work_is_at_the_expense_of_the_budget(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		put_rows(cpython, sizeof(cpython));
		put_load(CODE + i * 16, CPYTHON_BYTES);
	}
	open_rows();
	/* One that no time fills again. */
	budget = (struct throttle){1, UINT64_MAX};
	(void)jit_rows_read(rows, length, &budget);
	assert_true(budget.left <= 0);
	assert_false(jit_rows_read(rows, length, &budget));
	assert_ptr_equal(rule_at(CODE + 5), &cfi_no_rule);
	budget = (struct throttle){CFI_WORK_BURST - 1, UINT64_MAX};
	assert_true(jit_rows_read(rows, length, &budget));
	budget.left = 0;
	assert_ptr_equal(rule_at(CODE + 99 * 16 + 5), &cfi_unread_rule);
	budget.left = 1;
	assert_int_equal(rule_at(CODE + 99 * 16 + 5)->kind, CFI_SIMPLE);
	assert_true(budget.left < 0);
}

static void pieces_are_bounded(void **state)
{
	(void)state;
	for (uint64_t i = 0; i <= JIT_ROWS_MAX; i++) {
		put_rows(cpython, sizeof(cpython));
		put_load(CODE + i * 16, CPYTHON_BYTES);
	}
	budget = (struct throttle){CFI_WORK_BURST - 1, UINT64_MAX};
	assert_true(take());
	expect_cpython(CODE + (JIT_ROWS_MAX - 1) * UINT64_C(16));
	assert_ptr_equal(rule_at(CODE + JIT_ROWS_MAX * UINT64_C(16) + 5), &cfi_no_rule);
	assert_true(jit_rows_bytes(rows) < 2 << 20);
}

/* Only for code that is in no file; what is known by its bytes comes first. */
static void maps_have_the_rows_of_their_target(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, true);
	const struct map_range code = {.start = CODE, .len = 4096, .prot = PROT_READ | PROT_EXEC, .path = ""};

	(void)state;
	assert_int_equal(maps_add(maps, &code), 0);
	put_rows(cpython, sizeof(cpython));
	put_load(CODE, CPYTHON_BYTES);
	open_rows();
	const struct map *map = maps_find(maps, CODE);
	maps_set_jit_rows(maps, rows);
	assert_ptr_equal(maps_generated_rule(maps, map, CODE + 5, EM_X86_64), &cfi_no_rule);
	assert_true(jit_rows_read(rows, length, &budget));
	/* What was kept of the unwinder's look-ups is forgotten with each change. */
	char *scratch = NULL;
	while (!scratch)
		scratch = maps_scratch(maps, 16);
	*scratch = 1;
	assert_int_equal(*(char *)maps_scratch(maps, 16), 1);
	const size_t before = maps_bytes(maps);
	maps_set_jit_rows(maps, rows);
	assert_int_equal(*(char *)maps_scratch(maps, 16), 0);
	assert_int_equal(maps_generated_rule(maps, map, CODE + 5, EM_X86_64)->cfa_offset, 16);
	assert_true(maps_bytes(maps) > before);
	*scratch = 1;
	maps_set_jit_rows(maps, rows);
	assert_int_equal(*(char *)maps_scratch(maps, 16), 1);
	maps_set_jit_rows(maps, NULL);
	assert_ptr_equal(maps_generated_rule(maps, map, CODE + 5, EM_X86_64), &cfi_no_rule);
	maps_free(maps);
	modules_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(rows_of_cpython, begin, end),
	    cmocka_unit_test_setup_teardown(rows_of_v8, begin, end),
	    cmocka_unit_test_setup_teardown(the_newest_code_is_valid, begin, end),
	    cmocka_unit_test_setup_teardown(moved_code_keeps_its_rows, begin, end),
	    cmocka_unit_test_setup_teardown(what_is_not_whole_is_read_later, begin, end),
	    cmocka_unit_test_setup_teardown(sizes_that_lie_are_not_believed, begin, end),
	    cmocka_unit_test_setup_teardown(broken_bytes_do_no_harm, begin, end),
	    cmocka_unit_test_setup_teardown(work_is_at_the_expense_of_the_budget, begin, end),
	    cmocka_unit_test_setup_teardown(pieces_are_bounded, begin, end),
	    cmocka_unit_test_setup_teardown(maps_have_the_rows_of_their_target, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
