/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/symbol/string_pool.h"

static void equal_text_is_one_pointer(void **state)
{
	struct string_pool *names = string_pool_new();
	char text[] = "alpha";
	const char *first = string_pool_add(names, text, 5);

	text[0] = 'A';
	assert_string_equal(first, "alpha");
	assert_ptr_equal(string_pool_add(names, "alphabet", 5), first);
	assert_ptr_not_equal(string_pool_add(names, "alphabet", 8), first);
	assert_string_equal(string_pool_add(names, "", 0), "");
	string_pool_free(names);
}

static void names_survive_growth(void **state)
{
	struct string_pool *names = string_pool_new();
	const char *kept[3000];
	char text[32];

	for (int i = 0; i < 3000; i++)
		kept[i] = string_pool_add(names, text, (size_t)sprintf(text, "name %d", i));
	for (int i = 0; i < 3000; i++) {
		size_t length = (size_t)sprintf(text, "name %d", i);

		assert_string_equal(kept[i], text);
		assert_ptr_equal(string_pool_add(names, text, length), kept[i]);
	}
	string_pool_free(names);
}

static void bad_bytes_become_question_marks(void **state)
{
	static const char *const cases[][2] = {
	    {"a\x01z\x7f", "a?z?"},
	    {"tab\tline\n", "tab?line?"},
	    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
	    {"\xe2\x82\xac \xf0\x9f\x8e\x88", "\xe2\x82\xac \xf0\x9f\x8e\x88"},
	    {"\xff\xfe", "??"},
	    {"\xc0\xaf", "??"}, /* overlong */
	    {"\xe0\x80\xaf", "???"},
	    {"\xed\xa0\x80", "???"},      /* a surrogate */
	    {"\xf4\x90\x80\x80", "????"}, /* beyond U+10FFFF */
	    {"x\xe2\x82", "x??"},         /* cut */
	    {"a\xc2\x9b"
	     "2J",
	        "a??2J"}, /* C1: begins a sequence as ESC does */
	    {"\xe2\x80\xae"
	     "exe",
	        "???exe"}, /* shown from the right */
	    {"\xe2\x81\xa6x\xe2\x81\xa9", "???x???"},
	};
	struct string_pool *names = string_pool_new();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(string_pool_add(names, cases[i][0], strlen(cases[i][0])), cases[i][1]);
	assert_string_equal(string_pool_add(names, "a\0b", 3), "a?b");
	string_pool_free(names);
}

static void long_names_are_cut_between_characters(void **state)
{
	struct string_pool *names = string_pool_new();
	size_t length = STRING_POOL_LENGTH_MAX + 100;
	char *text = malloc(length);
	const char *name;

	memset(text, 'x', length);
	memcpy(text + STRING_POOL_LENGTH_MAX - 1, "\xc3\xbc", 2);
	name = string_pool_add(names, text, length);
	assert_int_equal(strlen(name), STRING_POOL_LENGTH_MAX);
	assert_int_equal(name[STRING_POOL_LENGTH_MAX - 1], '?');
	free(text);
	string_pool_free(names);
}

static void memory_is_aligned_and_apart(void **state)
{
	struct string_pool *names = string_pool_new();
	char *blocks[100];

	for (int i = 0; i < 100; i++) {
		string_pool_add(names, "odd", 3);
		blocks[i] = string_pool_alloc(names, (size_t)i * 900);
		assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
		memset(blocks[i], i, (size_t)i * 900);
	}
	for (int i = 1; i < 100; i++) {
		assert_int_equal(blocks[i][0], i);
		assert_int_equal(blocks[i][i * 900 - 1], i);
	}
	string_pool_free(names);
}

static void the_limit_holds(void **state)
{
	struct string_pool *names = string_pool_new();
	const char *before = string_pool_add(names, "before", 6);

	string_pool_limit(names, 100);
	assert_non_null(string_pool_alloc(names, 60));
	assert_null(string_pool_alloc(names, 60));
	assert_non_null(string_pool_add(names, "short", 5));
	assert_null(string_pool_add(names, "a string that is longer than what is left", 41));
	assert_ptr_equal(string_pool_add(names, "before", 6), before);
	string_pool_limit(names, 1000);
	assert_non_null(string_pool_alloc(names, 60));
	assert_null(string_pool_alloc(names, SIZE_MAX));
	string_pool_limit(names, SIZE_MAX);
	assert_null(string_pool_alloc(names, SIZE_MAX - 8));
	string_pool_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_text_is_one_pointer),
	    cmocka_unit_test(names_survive_growth),
	    cmocka_unit_test(bad_bytes_become_question_marks),
	    cmocka_unit_test(long_names_are_cut_between_characters),
	    cmocka_unit_test(memory_is_aligned_and_apart),
	    cmocka_unit_test(the_limit_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
