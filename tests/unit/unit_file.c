/* SPDX-License-Identifier: Apache-2.0 */
/* Unit files as systemd.syntax(7) describes them. */
#include "sampler/cmd/enable/unit_file.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct seen {
	char text[1024];
};

static void note(void *context, const struct unit_file_entry *entry)
{
	struct seen *seen = context;
	size_t length = strlen(seen->text);

	snprintf(seen->text + length, sizeof(seen->text) - length, "%u %s.%s=%s|", entry->line,
	    entry->section, entry->key, entry->value);
}

static void assignments(void **state)
{
	static const char *const rows[][2] = {
	    {"", ""},
	    {"[Service]\nA=1\n", "2 Service.A=1|"},
	    {"[Service]\n  A =  1 2 \t\r\n#B=2\n;C=3\n\n[X]\nD=", "2 Service.A=1 2|7 X.D=|"},
	    {"[S]\nA=1 \\\n  2 \\\n# no\n3\nB=x", "2 S.A=1    2  3|6 S.B=x|"},
	    {"[S]\nA=1\\", "2 S.A=1|"},
	    {"[S]\n# comment \\\nA=1\n", "3 S.A=1|"},
	    {"novalue\n=x\nA=b=c", "2 .=x|3 .A=b=c|"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct seen seen = {""};

		assert_int_equal(unit_file_parse(rows[i][0], note, &seen), 0);
		assert_string_equal(seen.text, rows[i][1]);
	}
}

static void words(void **state)
{
	static const char *const rows[][2] = {
	    {"", ""},
	    {" a  b\t", "a|b|"},
	    {"\"A=x y\" 'B=\"z\"'", "A=x y|B=\"z\"|"},
	    {"a\"b c\"d", "ab cd|"},
	    {"\\x41\\n\\s\\\\ %h%%", "A\n \\|%h%%|"},
	    {"\"\"", "|"},
	    {"\"open", "!"},
	    {"a \\q", "a|!"},
	    {"\\x4", "!"},
	    {"\\x00", "!"},
	    {"a\\", "!"},
	    {"123456789012345678901234567890123", "!"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		char text[256] = "", word[32];
		const char *at = rows[i][0];
		int ret;

		while ((ret = unit_file_word(&at, word, sizeof(word))) == 1) {
			strcat(text, word);
			strcat(text, "|");
		}
		if (ret < 0)
			strcat(text, "!");
		assert_string_equal(text, rows[i][1]);
	}
}

static void quoted_words_come_back(void **state)
{
	static const char *const rows[] = {"a", "", "a b", "\"\\'", "%%h", "\t"};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		char text[64], word[32];
		const char *at = text;

		assert_int_equal(unit_file_quote(rows[i], text, sizeof(text)), 0);
		assert_int_equal(unit_file_word(&at, word, sizeof(word)), 1);
		assert_string_equal(word, rows[i]);
		assert_int_equal(*at, '\0');
	}
	char small[8];
	assert_int_equal(unit_file_quote("abcde", small, sizeof(small)), 0);
	assert_int_equal(unit_file_quote("abcdef", small, sizeof(small)), -ENAMETOOLONG);
	assert_int_equal(unit_file_quote("abcd\"", small, sizeof(small)), -ENAMETOOLONG);
	assert_int_equal(unit_file_quote("", small, 2), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(assignments),
	    cmocka_unit_test(words),
	    cmocka_unit_test(quoted_words_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
