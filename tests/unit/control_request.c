/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the control socket: what is written is read again, and what is none is refused. */
#include "sampler/core/control_request.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void requests_come_back(void **state)
{
	static const struct {
		const char *text;
		struct control_request request;
	} rows[] = {
	    {"list", {.verb = CONTROL_LIST}},
	    {"snapshot 4711", {.verb = CONTROL_SNAPSHOT, .target = CONTROL_PID, .pid = 4711}},
	    {"snapshot all", {.verb = CONTROL_SNAPSHOT, .target = CONTROL_ALL}},
	    {"snapshot session 2147483647",
	        {.verb = CONTROL_SNAPSHOT, .target = CONTROL_SESSION, .pid = 2147483647}},
	    {"profile service a b", {.verb = CONTROL_PROFILE, .target = CONTROL_SERVICE, .service = "a b"}},
	    {"cpu 600000 12", {.verb = CONTROL_CPU, .target = CONTROL_PID, .pid = 12, .duration_ms = 600000}},
	};
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		char text[CONTROL_REQUEST_BYTES];
		struct control_request request;

		assert_int_equal(control_request_format(&rows[i].request, text), strlen(rows[i].text));
		assert_string_equal(text, rows[i].text);
		assert_int_equal(control_request_parse(&request, text, strlen(text)), 0);
		assert_memory_equal(&request, &rows[i].request, sizeof(request));
	}
}

static void what_is_no_request_is_refused(void **state)
{
	static const char *const texts[] = {"", " ", "list ", "list all", "snapshot", "snapshot ",
	    "snapshot 0", "snapshot -1", "snapshot +1", "snapshot 12x", "snapshot allx",
	    "snapshot 2147483648", "snapshot 99999999999999999999999", "snapshot session",
	    "snapshot session 0", "snapshot session all", "snapshot service", "snapshot service ",
	    "snapshot service a\nb", "snapshot service a\x1b[2J", "snapshot service \xff", "cpu 12",
	    "cpu 0 12", "cpu 600001 12", "cpu 12 ", "cpu x 12", "SNAPSHOT 1"};
	struct control_request request;
	char name[CONTROL_REQUEST_BYTES + 64];

	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		if (control_request_parse(&request, texts[i], strlen(texts[i])) != -EINVAL)
			fail_msg("'%s' is a request", texts[i]);
	assert_int_equal(control_request_parse(&request, "list\0", 5), -EINVAL);
	/* A service's name has 128 bytes at most; a request never overflows. */
	memset(name, 'a', sizeof(name));
	memcpy(name, "snapshot service ", 17);
	assert_int_equal(control_request_parse(&request, name, 17 + 128), 0);
	assert_int_equal(control_request_parse(&request, name, 17 + 129), -EINVAL);
	assert_int_equal(control_request_parse(&request, name, sizeof(name)), -EINVAL);
	request = (struct control_request){.verb = CONTROL_SNAPSHOT, .target = CONTROL_SERVICE};
	assert_int_equal(control_request_format(&request, name), -EINVAL);
	request = (struct control_request){.verb = CONTROL_SNAPSHOT, .target = CONTROL_PID};
	assert_int_equal(control_request_format(&request, name), -EINVAL);
	request = (struct control_request){.verb = CONTROL_CPU, .target = CONTROL_ALL};
	assert_int_equal(control_request_format(&request, name), -EINVAL);
}

static void answers_come_back(void **state)
{
	static const struct control_answer rows[] = {{.kind = CONTROL_BUSY}, {.kind = CONTROL_UNKNOWN},
	    {.kind = CONTROL_UNSAMPLED}, {.kind = CONTROL_UNSUPPORTED}, {.kind = CONTROL_OFF},
	    {.kind = CONTROL_ASKED, .count = UINT32_MAX}, {.kind = CONTROL_LISTED, .bytes = 0},
	    {.kind = CONTROL_LISTED, .bytes = CONTROL_LIST_BYTES_MAX},
	    {.kind = CONTROL_WRITTEN, .pid = 7, .text = "/a b/c.pb.gz"},
	    {.kind = CONTROL_PROFILED, .pid = 7, .bytes = 12}, {.kind = CONTROL_GONE, .pid = 7},
	    {.kind = CONTROL_FAILED, .pid = 7, .text = "No space left on device"},
	    {.kind = CONTROL_FAILED, .pid = 7, .text = ""}};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		char text[CONTROL_ANSWER_BYTES];
		struct control_answer answer;
		int length = control_answer_format(&rows[i], text);

		assert_int_equal(length, strlen(text));
		assert_int_equal(control_answer_parse(&answer, text, (size_t)length), 0);
		assert_memory_equal(&answer, &rows[i], sizeof(answer));
	}
}

static void what_is_no_answer_is_refused(void **state)
{
	static const char *const texts[] = {"", "x", "busy x", "asked", "asked 0", "asked -1",
	    "asked 4294967296", "list", "list x", "list 33554433", "written", "written 7", "written 0 /x",
	    "written x /x", "profile 7", "profile 7 268435457", "profile 7 -1", "failed", "failed 0 x",
	    "gone", "gone 0", "gone 7 x"};
	struct control_answer answer;
	char longest[CONTROL_ANSWER_BYTES + 1];

	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		if (control_answer_parse(&answer, texts[i], strlen(texts[i])) != -EPROTO)
			fail_msg("'%s' is an answer", texts[i]);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "failed 1 ", 9);
	assert_int_equal(control_answer_parse(&answer, longest, CONTROL_ANSWER_BYTES - 1), 0);
	assert_int_equal(control_answer_parse(&answer, longest, CONTROL_ANSWER_BYTES), -EPROTO);
	/* What is too long is cut, never refused: the other side has to hear something. */
	answer.kind = CONTROL_FAILED;
	memset(answer.text, 'y', sizeof(answer.text) - 1);
	answer.text[sizeof(answer.text) - 1] = '\0';
	assert_int_equal(control_answer_format(&answer, longest), CONTROL_ANSWER_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(requests_come_back),
	    cmocka_unit_test(what_is_no_request_is_refused),
	    cmocka_unit_test(answers_come_back),
	    cmocka_unit_test(what_is_no_answer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
