/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/symbol/symcodec.h"

static const struct symbol_frame frames_a[] = {
    {"inner", "_Zinner", "/src/a.cc", 10, 7, true},
    {"outer", "_Zouter", "/src/b.cc", 4000000000u, 4294967295u, false},
};
static const struct symbol_frame frames_b[] = {{"plain", "plain", NULL, 0, 0, false}};
static const struct symbol_result results[] = {{frames_a, 2, true}, {NULL, 0, false}, {frames_b, 1, false}};
static const uint64_t vaddrs[] = {0, 0x1234, UINT64_MAX};
static const struct symbol_facts facts = {SYMBOL_DWARF, true, false, true, true};

static int check(void *arg, uint64_t vaddr, const struct symbol_result *result)
{
	size_t *i = arg;
	const struct symbol_result *wanted = &results[*i];

	assert_true(vaddr == vaddrs[*i]);
	assert_int_equal(result->frame_count, wanted->frame_count);
	assert_int_equal(result->known, wanted->known);
	for (uint32_t f = 0; f < wanted->frame_count; f++) {
		assert_string_equal(result->frames[f].name, wanted->frames[f].name);
		assert_string_equal(result->frames[f].system_name, wanted->frames[f].system_name);
		if (wanted->frames[f].file)
			assert_string_equal(result->frames[f].file, wanted->frames[f].file);
		else
			assert_null(result->frames[f].file);
		assert_true(result->frames[f].line == wanted->frames[f].line);
		assert_true(result->frames[f].start_line == wanted->frames[f].start_line);
		assert_int_equal(result->frames[f].inlined, wanted->frames[f].inlined);
	}
	++*i;
	return 0;
}

static void what_goes_in_comes_out(void **state)
{
	struct symbol_facts got;
	uint8_t *bytes;
	size_t byte_count, seen = 0;

	assert_int_equal(symcodec_encode(&facts, vaddrs, results, 3, &bytes, &byte_count), 0);
	assert_int_equal(symcodec_decode(bytes, byte_count, &got, check, &seen), 0);
	assert_int_equal(seen, 3);
	assert_int_equal(got.source, SYMBOL_DWARF);
	assert_true(got.has_lines && !got.has_inlines && got.debug_file && got.split);
	free(bytes);
}

static int count(void *arg, uint64_t vaddr, const struct symbol_result *result)
{
	++*(size_t *)arg;
	return 0;
}

static void nothing_is_something_too(void **state)
{
	struct symbol_facts got;
	uint8_t *bytes;
	size_t byte_count, seen = 0;

	assert_int_equal(symcodec_encode(&facts, NULL, NULL, 0, &bytes, &byte_count), 0);
	assert_int_equal(symcodec_decode(bytes, byte_count, &got, count, &seen), 0);
	assert_int_equal(seen, 0);
	free(bytes);
}

static int stop_at_once(void *arg, uint64_t vaddr, const struct symbol_result *result)
{
	++*(size_t *)arg;
	return -ECANCELED;
}

static void each_can_stop(void **state)
{
	struct symbol_facts got;
	uint8_t *bytes;
	size_t byte_count, seen = 0;

	assert_int_equal(symcodec_encode(&facts, vaddrs, results, 3, &bytes, &byte_count), 0);
	assert_int_equal(symcodec_decode(bytes, byte_count, &got, stop_at_once, &seen), -ECANCELED);
	assert_int_equal(seen, 1);
	free(bytes);
}

static void strings_are_stored_once(void **state)
{
	struct symbol_frame frames[100];
	struct symbol_result many[100];
	uint64_t at[100];
	char copies[100][64];
	uint8_t *bytes;
	size_t byte_count;

	for (size_t i = 0; i < 100; i++) {
		memset(copies[i], 'n', 60);
		copies[i][60] = '\0';
		frames[i] = (struct symbol_frame){copies[i], copies[i], copies[i], 1, 1, false};
		many[i] = (struct symbol_result){&frames[i], 1, true};
		at[i] = i * 16;
	}
	assert_int_equal(symcodec_encode(&facts, at, many, 100, &bytes, &byte_count), 0);
	assert_true(byte_count < 100 * 8 + 100);
	free(bytes);
}

static void order_and_limits_are_checked(void **state)
{
	static const uint64_t twice[] = {5, 5}, back[] = {5, 4};
	static const struct symbol_result pair[] = {{frames_b, 1, true}, {frames_b, 1, true}};
	const struct symbol_result deep = {frames_b, SYMBOL_FRAMES_MAX + 1, true};
	char *longest = malloc(SYMCODEC_STRING_MAX + 2);
	const struct symbol_frame frame = {longest, longest, NULL, 0, 0, false};
	const struct symbol_result too_long = {&frame, 1, true};
	uint8_t *bytes;
	size_t byte_count;

	memset(longest, 'x', SYMCODEC_STRING_MAX + 1);
	longest[SYMCODEC_STRING_MAX + 1] = '\0';
	assert_int_equal(symcodec_encode(&facts, twice, pair, 2, &bytes, &byte_count), -EINVAL);
	assert_int_equal(symcodec_encode(&facts, back, pair, 2, &bytes, &byte_count), -EINVAL);
	assert_int_equal(symcodec_encode(&facts, vaddrs, &deep, 1, &bytes, &byte_count), -EINVAL);
	assert_int_equal(symcodec_encode(&facts, vaddrs, &too_long, 1, &bytes, &byte_count), -EINVAL);
	free(longest);
}

/*
 * Each proper prefix is refused, and no changed byte leads out of the buffer (which is as large as it must
 * be).
 */
static void damaged_bytes_are_refused_or_harmless(void **state)
{
	struct symbol_facts got;
	uint8_t *bytes;
	size_t byte_count, seen = 0;

	assert_int_equal(symcodec_encode(&facts, vaddrs, results, 3, &bytes, &byte_count), 0);
	for (size_t length = 0; length < byte_count; length++) {
		uint8_t *cut = malloc(length ? length : 1);

		memcpy(cut, bytes, length);
		assert_int_equal(symcodec_decode(cut, length, &got, count, &seen), -EBADMSG);
		free(cut);
	}
	assert_int_equal(seen, 0);
	for (size_t at = 0; at < byte_count; at++) {
		for (int value = 0; value < 256; value++) {
			uint8_t *changed = malloc(byte_count);
			int error;

			memcpy(changed, bytes, byte_count);
			changed[at] = (uint8_t)value;
			seen = 0;
			error = symcodec_decode(changed, byte_count, &got, count, &seen);
			assert_true(error == 0 || (error == -EBADMSG && seen == 0));
			free(changed);
		}
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_goes_in_comes_out),
	    cmocka_unit_test(nothing_is_something_too),
	    cmocka_unit_test(each_can_stop),
	    cmocka_unit_test(strings_are_stored_once),
	    cmocka_unit_test(order_and_limits_are_checked),
	    cmocka_unit_test(damaged_bytes_are_refused_or_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
