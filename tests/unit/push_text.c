/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* What heaptap-push reads from users and servers: URLs, labels, answers, the retry table, names in the
 * spool. */
#include "pprof/model/labels.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/store/spool_files.h"
#include "push/answer.h"
#include "push/target.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)

static void url_has_protocol_address_and_name(void **state)
{
	static const struct {
		const char *text, *address, *name;
		enum url_protocol protocol;
	} good[] = {
	    {"pyroscope+http://localhost:4040", "http://localhost:4040", "pyroscope-localhost-4040",
	        URL_PYROSCOPE},
	    {"pyroscope+https://h/base/", "https://h/base", "pyroscope-h-443", URL_PYROSCOPE},
	    {"parca+http://[::1]:7070//", "http://[::1]:7070", "parca----1--7070", URL_PARCA},
	    {"otlp+https://c.example:4318", "https://c.example:4318", "otlp-c.example-4318", URL_OTLP},
	};
	static const char *const bad[] = {"", "http://h", "parca+http://", "parca+http:///x",
	    "parca+http://h:", "parca+http://h:0", "parca+http://h:65536", "parca+http://h:1:2",
	    "parca+http://u@h", "parca+http://h/?a", "parca+http://h/#a", "parca+http://h/ x",
	    "parca+http://h/\n", "parca+http://[::1", "parca+http://[]", "parca+http://::1",
	    "parca+http://:80"};
	struct url url;
	char error[512];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(url_parse(good[i].text, &url, error, sizeof(error)), 0);
		assert_string_equal(url.address, good[i].address);
		assert_string_equal(url.name, good[i].name);
		assert_int_equal(url.protocol, good[i].protocol);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (url_parse(bad[i], &url, error, sizeof(error)) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	assert_int_equal(url_parse("datadog+http://agent", &url, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "datadog+http:// is gone: use pyroscope+http(s)://"));
}

static void a_token_is_read_by_others_on_its_way(void **state)
{
	static const char *const readable[] = {"parca+http://h", "parca+http://10.0.0.1:7070",
	    "parca+http://localhost.example.org/", "parca+http://127.example", "parca+http://[::2]:7070",
	    "parca+http://1.27.0.0"};
	static const char *const hidden[] = {"parca+https://h", "parca+http://localhost",
	    "parca+http://LOCALHOST/x", "parca+http://127.0.0.1:7070", "parca+http://127.9.9.9",
	    "parca+http://[::1]:7070", "parca+http://[::1]"};
	struct url url;
	char error[512];

	for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
		assert_int_equal(url_parse(readable[i], &url, error, sizeof(error)), 0);
		assert_true(url_is_readable_by_others(&url));
	}
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		assert_int_equal(url_parse(hidden[i], &url, error, sizeof(error)), 0);
		assert_false(url_is_readable_by_others(&url));
	}
}

static void labels_are_legal_and_few(void **state)
{
	struct labels labels = {0};
	char name[16];

	assert_int_equal(labels_add(&labels, "k8s.pod", "a"), 0);
	assert_string_equal(labels_find(&labels, "k8s_pod"), "a");
	assert_int_equal(labels_add(&labels, "k8s-pod", "b"), 0);
	assert_string_equal(labels_find(&labels, "k8s_pod"), "a");
	assert_int_equal(labels_add(&labels, "0x", "c"), 0);
	assert_string_equal(labels_find(&labels, "_0x"), "c");
	assert_int_equal(labels_add(&labels, "__name__", "d"), -EINVAL);
	assert_int_equal(labels_add(&labels, "", "d"), -EINVAL);
	assert_int_equal(labels_add(&labels, "empty", ""), 0);
	assert_null(labels_find(&labels, "empty"));
	assert_int_equal(labels_add_text(&labels, "utf=\xff\n"), 0);
	assert_string_equal(labels_find(&labels, "utf"), "\xef\xbf\xbd ");
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(labels_add(&labels, name, "v"), 0);
	}
	assert_int_equal(labels.count, LABELS_MAX);
	assert_int_equal(labels.left_out, 40 + 3 - LABELS_MAX);
	labels_fini(&labels);
}

static void labels_of_a_comment_are_decoded(void **state)
{
	struct labels labels = {0};

	assert_int_equal(
	    labels_add_comment(&labels, "service_name=a%20b  unit=%22x%22 =bad bad host=100%25 x=%zz y=%4"),
	    0);
	assert_string_equal(labels_find(&labels, "service_name"), "a b");
	assert_string_equal(labels_find(&labels, "unit"), "\"x\"");
	assert_string_equal(labels_find(&labels, "host"), "100%");
	assert_string_equal(labels_find(&labels, "x"), "%zz");
	assert_string_equal(labels_find(&labels, "y"), "%4");
	assert_int_equal(labels.count, 5);
	labels_fini(&labels);
}

static void the_users_labels_come_before_the_comments(void **state)
{
	struct labels given = {0}, labels = {0};
	struct profile *profile = profile_new();
	struct origin origin;

	profile_add_comment(profile, "heaptap 0.1.0");
	profile_add_comment(profile, "pid=1 comm=server host=box");
	origin_read(&origin, profile);
	assert_int_equal(labels_of_profile(&labels, profile, &origin, &given), 0);
	assert_string_equal(labels_find(&labels, "service_name"), "server");
	assert_string_equal(labels_find(&labels, "host"), "box");
	labels_fini(&labels);
	profile_add_comment(profile, "labels: pid=1 service_name=shop env=dev");
	labels_add(&given, "env", "prod");
	labels_add(&given, "pid", "1");
	assert_int_equal(labels_of_profile(&labels, profile, &origin, &given), 0);
	assert_string_equal(labels.rows[0].name, "service_name");
	assert_string_equal(labels.rows[0].value, "shop");
	assert_string_equal(labels_find(&labels, "env"), "prod");
	assert_null(labels_find(&labels, "host"));
	assert_null(labels_find(&labels, "pid"));
	labels_fini(&labels);
	labels_fini(&given);
	profile_free(profile);
}

static void source_line(struct answer *answer, const char *line)
{
	assert_true(answer_header(answer, line, strlen(line)));
}

static void answers_keep_what_is_judged(void **state)
{
	struct answer answer;
	const uint8_t *message;
	char text[ANSWER_TEXT_BYTES];
	size_t length;

	answer_init(&answer);
	source_line(&answer, "HTTP/1.1 100 Continue\r\n");
	source_line(&answer, "Retry-After: 7\r\n");
	source_line(&answer, "HTTP/2 200 \r\n");
	source_line(&answer, "Content-Type:application/grpc\r\n");
	assert_string_equal(answer.retry_after, "");
	assert_true(answer_body(&answer, "\0\0\0\0\2\x08", 6));
	assert_int_equal(answer_grpc_message(&answer, &message, &length), -EBADMSG);
	assert_true(answer_body(&answer, "\1", 1));
	assert_int_equal(answer_grpc_message(&answer, &message, &length), 0);
	assert_int_equal(length, 2);
	assert_true(answer_is_protobuf(message, length));
	assert_false(answer_is_protobuf(message, 1));
	assert_int_equal(answer.grpc_status, ANSWER_NO_GRPC_STATUS);
	source_line(&answer, "grpc-status: 5\r\n");
	source_line(&answer, "grpc-message: not%20found%1b[31m%\r\n");
	assert_int_equal(answer.grpc_status, 5);
	answer_text(&answer, text);
	assert_string_equal(text, "grpc-status 5: not found?[31m%");
	/* What is not a number is "unknown", not 0. */
	source_line(&answer, "grpc-status: \r\n");
	assert_int_equal(answer.grpc_status, 2);
	source_line(&answer, "grpc-status: 0x\r\n");
	assert_int_equal(answer.grpc_status, 2);
}

/* A server may print what it was sent; the token must not be in our log for that. */
static void a_repeated_token_is_hidden(void **state)
{
	static const char body[] = "bad header: Authorization: Bearer s3cr3t-token, s3cr3t-token; s3cr3";
	struct answer answer;
	char text[ANSWER_TEXT_BYTES];

	answer_init(&answer);
	source_line(&answer, "HTTP/1.1 400 Bad\r\n");
	source_line(&answer, "Content-Type: text/plain\r\n");
	source_line(&answer, "grpc-status: 3\r\n");
	source_line(&answer, "grpc-message: no%20s3cr3t%2dtoken\r\n");
	assert_true(answer_body(&answer, body, sizeof(body) - 1));
	answer_hide(&answer, "s3cr3t-token");
	answer_text(&answer, text);
	assert_string_equal(text,
	    "grpc-status 3: no ************: bad header: Authorization: Bearer ************, ************; "
	    "*****");
	/* What is short is in many words. */
	answer_hide(&answer, "bad");
	answer_text(&answer, text);
	assert_non_null(strstr(text, "bad header"));
}

static void answers_are_bounded(void **state)
{
	static char line[2000], body[65536];
	struct answer answer;
	size_t sent = 0;

	memset(line, 'x', sizeof(line));
	answer_init(&answer);
	while (answer_header(&answer, line, sizeof(line)))
		sent += sizeof(line);
	assert_in_range(sent, 1, ANSWER_HEADER_BYTES);
	answer_init(&answer);
	for (sent = 0; answer_body(&answer, body, sizeof(body)); sent += sizeof(body))
		;
	assert_in_range(sent, 1, ANSWER_BODY_BYTES);
	assert_int_equal(answer.body_kept, ANSWER_KEPT_BYTES);
	/* A new status line does not begin to count anew. */
	answer_init(&answer);
	for (sent = 0; answer_header(&answer, "HTTP/1.1 100 x\r\n", 16); sent += 16)
		;
	assert_in_range(sent, 1, ANSWER_HEADER_BYTES);
}

static void retries_follow_the_table(void **state)
{
	static const int later[] = {408, 429, 499, 500, 502, 503, 599}, final[] = {301, 400, 404, 413, 422},
	                 denied[] = {401, 403, 407};
	static const int grpc_later[] = {1, 2, 4, 8, 10, 13, 14, 15}, grpc_final[] = {3, 5, 6, 9, 11, 12, 99},
	                 grpc_denied[] = {7, 16};
	uint64_t want = ANSWER_RETRY_FIRST_NS;

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		assert_int_equal(answer_judge_http(later[i]), ANSWER_LATER);
	for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++)
		assert_int_equal(answer_judge_http(final[i]), ANSWER_REFUSED);
	for (size_t i = 0; i < sizeof(grpc_later) / sizeof(grpc_later[0]); i++)
		assert_int_equal(answer_judge_grpc(grpc_later[i]), ANSWER_LATER);
	for (size_t i = 0; i < sizeof(grpc_final) / sizeof(grpc_final[0]); i++)
		assert_int_equal(answer_judge_grpc(grpc_final[i]), ANSWER_REFUSED);
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		assert_int_equal(answer_judge_http(denied[i]), ANSWER_DENIED);
	for (size_t i = 0; i < sizeof(grpc_denied) / sizeof(grpc_denied[0]); i++)
		assert_int_equal(answer_judge_grpc(grpc_denied[i]), ANSWER_DENIED);
	for (unsigned int failures = 1; failures < 100; failures++) {
		for (uint64_t random = 0; random < UINT64_MAX / 3; random += UINT64_MAX / 7) {
			uint64_t delay = answer_retry_delay_ns(failures, random, 0);

			assert_in_range(delay, want - want / 10, want + want / 10);
		}
		want = want * 2 < ANSWER_RETRY_MOST_NS ? want * 2 : ANSWER_RETRY_MOST_NS;
	}
	assert_in_range(answer_retry_delay_ns(1, 12345, 30 * SECOND_NS), 30 * SECOND_NS, 33 * SECOND_NS);
	assert_in_range(answer_retry_delay_ns(1, 12345, UINT64_MAX), ANSWER_RETRY_ASKED_MAX,
	    ANSWER_RETRY_ASKED_MAX / 10 * 11);
}

static void retry_after_is_seconds_or_a_date(void **state)
{
	const int64_t now = INT64_C(1445412480) * 1000000000; /* Wed, 21 Oct 2015 07:28:00 GMT */

	assert_int_equal(answer_retry_after_ns("120", now), 120 * SECOND_NS);
	assert_int_equal(answer_retry_after_ns("Wed, 21 Oct 2015 07:28:30 GMT", now), 30 * SECOND_NS);
	assert_int_equal(answer_retry_after_ns("Wed, 21 Oct 2015 07:27:30 GMT", now), 0);
	assert_int_equal(answer_retry_after_ns("Wed, 21 Oct 2099 07:27:30 GMT", now), ANSWER_RETRY_ASKED_MAX);
	assert_int_equal(answer_retry_after_ns("99999999999999999999999999", now), ANSWER_RETRY_ASKED_MAX);
	assert_int_equal(answer_retry_after_ns("", now), 0);
	assert_int_equal(answer_retry_after_ns("-5", now), 0);
	assert_int_equal(answer_retry_after_ns("soon", now), 0);
}

static void names_in_the_spool_come_back(void **state)
{
	static const char *const bad[] = {"", "x", "1-2-3-s.pb.gz",
	    "00000000000000000000-00000000000000000001-00000000000000aa-s.pb.gz",
	    "00000000000000000001-00000000000000000001-00000000000000aa-x.pb.gz",
	    "00000000000000000001-00000000000000000001-00000000000000aa-s.pb.gz.txt",
	    "00000000000000000001--0000000000000000001-00000000000000aa-s.pb.gz",
	    "99999999999999999999-99999999999999999999-00000000000000aa-s.pb.gz",
	    "18446744073709551615-00000000000000000001-00000000000000aa-s.pb.gz"};
	const struct spool_entry entry = {
	    .number = 42, .time_ns = INT64_MAX, .process = UINT64_MAX - 1, .last = true};
	struct spool_entry again = {0};
	char name[SPOOL_NAME_BYTES];

	spool_name_print(&entry, name);
	assert_true(spool_name_parse(name, &again));
	assert_memory_equal(&entry, &again, sizeof(entry));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (spool_name_parse(bad[i], &again))
			fail_msg("'%s' was taken", bad[i]);
}

static void counters_come_back(void **state)
{
	const struct spool_counters counters = {1, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
	    UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct spool_counters again;
	char text[SPOOL_COUNTERS_BYTES];
	size_t length = spool_counters_print(&counters, text);

	spool_counters_parse((const uint8_t *)text, length, &again);
	assert_memory_equal(&counters, &again, sizeof(counters));
	spool_counters_parse((const uint8_t *)"sent\n\n\nsent 5", 13, &again);
	assert_int_equal(again.sent, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(url_has_protocol_address_and_name),
	    cmocka_unit_test(a_token_is_read_by_others_on_its_way),
	    cmocka_unit_test(labels_are_legal_and_few),
	    cmocka_unit_test(labels_of_a_comment_are_decoded),
	    cmocka_unit_test(the_users_labels_come_before_the_comments),
	    cmocka_unit_test(answers_keep_what_is_judged),
	    cmocka_unit_test(a_repeated_token_is_hidden),
	    cmocka_unit_test(answers_are_bounded),
	    cmocka_unit_test(retries_follow_the_table),
	    cmocka_unit_test(retry_after_is_seconds_or_a_date),
	    cmocka_unit_test(names_in_the_spool_come_back),
	    cmocka_unit_test(counters_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
