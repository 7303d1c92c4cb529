/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the command line -> columns: what is a series, what is added up; and merge, which adds up for
 * good. */
#include "sampler/cmd/report/profile_input.h"

#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/profile.h"
#include "sampler/cmd/cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILES_MAX = 4 };

static char folder[] = "/tmp/heaptap-input-XXXXXX";
static char paths[FILES_MAX][64];
static char *operands[FILES_MAX + 1];

static int folder_make(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
	snprintf(paths[2], sizeof(paths[2]), "%s/2.pb.gz", folder);
	snprintf(paths[3], sizeof(paths[3]), "%s/merged", folder);
	for (int i = 0; i < FILES_MAX; i++)
		unlink(paths[i]);
	return rmdir(folder);
}

/* A heap profile of `bytes` in use, as heaptap writes it for a process, at a second and for a cause. */
static const char *more_comments[3]; /* of the next file; NULL: no more */

static void file_make(int number, const char *type, int pid, int second, const char *cause, int64_t bytes)
{
	struct profile *p = profile_new();
	char text[128];
	uint8_t *raw, *packed;
	size_t len, packed_len;
	uint32_t location;
	FILE *file;

	profile_add_sample_type(p, type, "bytes");
	profile_set_default_sample_type(p, type);
	profile_set_period(p, "space", "bytes", 4096);
	profile_set_time(p, (int64_t)second * 1000000000, 0);
	profile_add_comment(p, "heaptap 0.1.0");
	snprintf(text, sizeof(text), "pid=%d comm=app host=h", pid);
	profile_add_comment(p, text);
	snprintf(text, sizeof(text), "session=1-2 start=%d", pid);
	profile_add_comment(p, text);
	snprintf(text, sizeof(text), "snapshot: %s", cause);
	profile_add_comment(p, text);
	for (size_t i = 0; i < 2 && more_comments[i]; i++)
		profile_add_comment(p, more_comments[i]);
	memset(more_comments, 0, sizeof(more_comments));
	profile_add_mapping(p, &(struct profile_mapping){0x1000, 0x2000, 0, "/bin/app", "", 0});
	profile_add_function(p, &(struct profile_function){"f", "f", "", 0});
	location = profile_add_location(
	    p, &(struct profile_location){1, 0x1010, &(struct profile_line){.function = 1}, 1, false});
	profile_add_sample(p, &location, 1, &bytes, NULL, 0);
	assert_int_equal(encode_profile(p, &raw, &len), 0);
	assert_int_equal(gzip_encode(raw, len, 1, &packed, &packed_len), 0);
	snprintf(paths[number], sizeof(paths[number]), "%s/%d.pb.gz", folder, number);
	file = fopen(paths[number], "w");
	assert_non_null(file);
	assert_int_equal(fwrite(packed, 1, packed_len, file), packed_len);
	assert_int_equal(fclose(file), 0);
	operands[number] = paths[number];
	free(raw);
	free(packed);
	profile_free(p);
}

static struct options options_of(int count)
{
	struct options options = {.operands = operands, .operand_count = count};

	options.read.memory_max_bytes = MEMORY_MAX_BYTES_DEFAULT;
	operands[count] = NULL;
	return options;
}

/* log_line()'s words are the user's, not this test's. */
static int open_quietly(struct profile_input *input, const struct options *options)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY), status;

	dup2(null, STDERR_FILENO);
	status = profile_input_open(input, options, false);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	return status;
}

static void states_of_one_process_are_columns_in_order(void **state)
{
	struct profile_input input;
	struct options options;

	file_make(0, "inuse_space", 7, 30, "exit", 300);
	file_make(1, "inuse_space", 7, 10, "interval", 100);
	file_make(2, "inuse_space", 7, 20, "interval", 500);
	options = options_of(3);
	assert_int_equal(profile_input_open(&input, &options, false), 0);
	assert_int_equal(input.series_count, 3);
	assert_int_equal(input.now, 2);
	assert_int_equal(input.peak, 1);
	assert_false(input.has_peak);
	assert_int_equal(traces_all(&input.traces, 0, MEASURE_INUSE), 100);
	assert_int_equal(traces_all(&input.traces, input.now, MEASURE_INUSE), 300);
	profile_input_close(&input);
}

static void other_processes_are_added_up(void **state)
{
	struct profile_input input;
	struct options options;

	file_make(0, "inuse_space", 7, 10, "exit", 300);
	file_make(1, "inuse_space", 8, 20, "exit", 100);
	options = options_of(2);
	assert_int_equal(profile_input_open(&input, &options, false), 0);
	assert_int_equal(input.series_count, 1);
	assert_int_equal(input.file_count, 2);
	assert_int_equal(traces_all(&input.traces, input.now, MEASURE_INUSE), 400);
	profile_input_close(&input);
	assert_int_equal(profile_input_open_columns(&input, &options), 0);
	assert_int_equal(traces_all(&input.traces, 0, MEASURE_INUSE), 300);
	assert_int_equal(traces_all(&input.traces, 1, MEASURE_INUSE), 100);
	profile_input_close(&input);
}

static void file_of_unseen(int number, int pid, int second, const char *rss, const char *unseen)
{
	more_comments[0] = rss;
	more_comments[1] = unseen;
	file_make(number, "inuse_space", pid, second, "interval", 100);
}

/* Of several processes, that one's comment counts of which the most is not seen, and not the newest's. */
static void most_unseen_is_shown(void **state)
{
	struct profile_input input;
	struct options options;

	file_of_unseen(
	    0, 7, 10, "rss: total=9000 heap=0 heap_error=0 slack=0 anonymous=8000", "not seen: much");
	file_of_unseen(
	    1, 8, 30, "rss: total=9999 heap=9000 heap_error=0 slack=0 anonymous=9", "not seen: few");
	file_of_unseen(2, 9, 20, "rss: total=9999 heap=1 heap_error=0 slack=9998", NULL);
	options = options_of(3);
	assert_int_equal(profile_input_open(&input, &options, false), 0);
	assert_string_equal(input.origins[input.now].unseen, "much");
	profile_input_close(&input);
	/* of the kernel's counters: what the heap does not explain */
	file_of_unseen(2, 9, 20, "rss: total=9999 heap=1 heap_error=0 slack=9998", "not seen: most");
	options = options_of(3);
	assert_int_equal(profile_input_open(&input, &options, false), 0);
	assert_string_equal(input.origins[input.now].unseen, "most");
	profile_input_close(&input);
}

static void what_is_missing_is_an_error(void **state)
{
	struct profile_input input;
	struct options options;
	enum measure_kind kind;
	size_t column;

	file_make(0, "inuse_space", 7, 10, "exit", 300);
	file_make(1, "page_faults", 8, 20, "exit", 100);
	options = options_of(2);
	assert_int_equal(open_quietly(&input, &options), 1); /* no sample type in common */
	profile_input_close(&input);
	operands[1] = "/no/such/file";
	assert_int_equal(open_quietly(&input, &options), 1);
	profile_input_close(&input);
	options = options_of(1);
	options.read.focus = "a(";
	assert_int_equal(open_quietly(&input, &options), 2);
	profile_input_close(&input);
	options.read.focus = NULL;
	options.read.memory_max_bytes = 1 << 16;
	assert_int_equal(open_quietly(&input, &options), 1);
	profile_input_close(&input);
	options = options_of(1);
	assert_int_equal(profile_input_open(&input, &options, false), 0);
	assert_int_equal(profile_input_kind(&input, SORT_DEFAULT, &kind, &column), 0);
	assert_int_equal(kind, MEASURE_INUSE);
	assert_int_equal(column, 0);
	profile_input_close(&input);
}

static void merging_adds_up(void **state)
{
	struct options options;
	struct profile *merged;
	char error[256];

	file_make(0, "inuse_space", 7, 10, "exit", 300);
	file_make(1, "inuse_space", 8, 20, "exit", 100);
	snprintf(paths[3], sizeof(paths[3]), "%s/merged", folder);
	options = options_of(2);
	options.output = paths[3];
	assert_int_equal(merge_run(&options), 0);
	assert_int_equal(decode_file(paths[3], 1 << 20, &merged, error, sizeof(error)), 0);
	assert_int_equal(profile_sample_count(merged), 1);
	assert_int_equal(profile_sample(merged, 0).values[0], 400);
	profile_free(merged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(states_of_one_process_are_columns_in_order),
	    cmocka_unit_test(other_processes_are_added_up),
	    cmocka_unit_test(most_unseen_is_shown),
	    cmocka_unit_test(what_is_missing_is_an_error),
	    cmocka_unit_test(merging_adds_up),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
