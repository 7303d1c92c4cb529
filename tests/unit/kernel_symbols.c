/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's functions, from the text of /proc/kallsyms. */
#include "sampler/symbol/kernel_symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct kernel_symbols *parse(const char *text)
{
	return kernel_symbols_parse(strdup(text), strlen(text));
}

static void functions(void **unused)
{
	struct kernel_symbols *s = parse("ffffffff81000100 T second\n"
	                                 "ffffffff81000000 T _text\n"
	                                 "ffffffff81000180 D data\n"
	                                 "ffffffff81000200 t third\n"
	                                 "ffffffffc0000000 t in_module\t[ext4]\n"
	                                 "ffffffff81000300 W weak");

	assert_int_equal(5, kernel_symbols_count(s));
	assert_null(kernel_symbols_find(s, 0xffffffff80ffffffu));
	assert_string_equal("_text", kernel_symbols_find(s, 0xffffffff81000000u));
	assert_string_equal("_text", kernel_symbols_find(s, 0xffffffff810000ffu));
	assert_string_equal("second", kernel_symbols_find(s, 0xffffffff810001ffu));
	assert_string_equal("third", kernel_symbols_find(s, 0xffffffff81000200u));
	assert_string_equal("weak", kernel_symbols_find(s, 0xffffffff90000000u));
	assert_string_equal("in_module", kernel_symbols_find(s, UINT64_MAX));
	kernel_symbols_free(s);
}

/* What a user without rights reads, and what no kernel writes. */
static void nothing(void **unused)
{
	static const char *const texts[] = {"", "\n\n", "0000000000000000 T _text\n0000000000000000 t x\n",
	    "xyz\n", "12\n", "12 T\n", "12 T \n", "12  name\n", "ffffffff81000000 D data\n", " \t\n12Tname"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct kernel_symbols *s = parse(texts[i]);

		assert_int_equal(0, kernel_symbols_count(s));
		assert_null(kernel_symbols_find(s, UINT64_MAX));
		kernel_symbols_free(s);
	}
	assert_null(kernel_symbols_open("/nonexistent"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(functions),
	    cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
