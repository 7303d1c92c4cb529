/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void values_nest_with_commas_where_they_belong(void **state)
{
	char *text;
	size_t bytes;
	struct json json = {.out = open_memstream(&text, &bytes)};

	json_object(&json, NULL);
	json_text(&json, "name", "x");
	json_array(&json, "numbers");
	json_integer(&json, NULL, -1);
	json_integer(&json, NULL, INT64_MAX);
	json_end(&json);
	json_array(&json, "empty");
	json_end(&json);
	json_object(&json, "object");
	json_boolean(&json, "yes", true);
	json_boolean(&json, "no", false);
	json_end(&json);
	json_array(&json, "rows");
	for (int i = 0; i < 2; i++) {
		json_object(&json, NULL);
		json_number(&json, "value", i + 0.25, 1);
		json_array(&json, "stack");
		json_end(&json);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	fclose(json.out);
	assert_string_equal(text,
	    "{\"name\":\"x\",\n"
	    "\"numbers\":[-1,9223372036854775807],\n"
	    "\"empty\":[],\n"
	    "\"object\":{\"yes\":true,\"no\":false},\n"
	    "\"rows\":[\n"
	    "{\"value\":0.2,\"stack\":[]},\n"
	    "{\"value\":1.2,\"stack\":[]}]}\n");
	free(text);
}

static void text_is_escaped(void **state)
{
	char *text;
	size_t bytes;
	struct json json = {.out = open_memstream(&text, &bytes)};

	json_array(&json, NULL);
	json_text(&json, NULL, "a\"b\\c\n\x01\x7f</script>\xc3\xbc\xc2\x9b\xe2\x80\xae\xe2\x81\xa6");
	json_end(&json);
	fclose(json.out);
	assert_string_equal(
	    text, "[\"a\\\"b\\\\c\\u000a\\u0001\\u007f\\u003c/script>\xc3\xbc\\u009b\\u202e\\u2066\"]\n");
	free(text);
}

static void what_is_no_number_is_null(void **state)
{
	char *text;
	size_t bytes;
	struct json json = {.out = open_memstream(&text, &bytes)};

	json_array(&json, NULL);
	json_number(&json, NULL, NAN, 1);
	json_number(&json, NULL, INFINITY, 1);
	json_number(&json, NULL, -0.5, 3);
	json_end(&json);
	fclose(json.out);
	assert_string_equal(text, "[null,null,-0.500]\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(values_nest_with_commas_where_they_belong),
	    cmocka_unit_test(text_is_escaped),
	    cmocka_unit_test(what_is_no_number_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
