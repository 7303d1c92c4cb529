/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of many processes: what is kept, what is summed up, and how it looks. */
#include "sampler/write/summary_screen.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MIB = 1 << 20, PERIOD_BYTES = 512 << 10 };

static struct summary_list list;
static char *text;
static uint64_t running;

static int begin(void **state)
{
	(void)state;
	memset(&list, 0, sizeof(list));
	running = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	summary_list_clear(&list);
	free(text);
	text = NULL;
	return 0;
}

static void assert_widest_line(const char *lines, size_t columns)
{
	for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
		length = strcspn(lines, "\n");
		assert_in_range(length, 0, columns);
	}
}

static struct summary_estimate mebibytes(double mib)
{
	uint64_t samples = (uint64_t)(2 * mib);

	return (struct summary_estimate){samples, mib * MIB, (double)samples, mib * MIB * PERIOD_BYTES, 1};
}

static struct summary_row row_of(const char *title, pid_t pid, double peak_mib, double at_end_mib)
{
	struct summary_row row = {.pid = pid,
	    .period_bytes = PERIOD_BYTES,
	    .has_peak = true,
	    .certain = true,
	    .peak = mebibytes(peak_mib),
	    .at_end = mebibytes(at_end_mib),
	    .samples = (uint64_t)(2 * peak_mib)};

	snprintf(row.title, sizeof(row.title), "%s", title);
	strcpy(row.end, "exited with status 0");
	assert_true(asprintf(&row.path, "out/heaptap.%s.%d.exit.pb.gz", title, (int)pid) > 0);
	assert_true(asprintf(&row.peak_path, "out/heaptap.%s.%d.peak.pb.gz", title, (int)pid) > 0);
	return row;
}

static void add(const char *title, pid_t pid, double peak_mib, double at_end_mib)
{
	struct summary_row row = row_of(title, pid, peak_mib, at_end_mib);

	summary_list_add(&list, &row);
	assert_null(row.path);
}

static void add_command(double peak_mib, double at_end_mib)
{
	struct summary_row row = row_of("bash", 4711, peak_mib, at_end_mib);

	row.command = true;
	row.block = strdup("bash (pid 4711) exited with status 0\n  peak\n");
	summary_list_add(&list, &row);
}

static const char *printed(void (*print)(FILE *, int width), int width)
{
	size_t bytes;

	free(text);
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	print(out, width);
	fclose(out);
	return text;
}

static void table(FILE *out, int width)
{
	summary_screen_table(out, &list, width);
}

static void screen(FILE *out, int width)
{
	const struct summary_facts facts = {
	    .missed = "not profiled: 1 processes\n", .min_samples = 16, .running = running, .width = width};

	summary_screen_print(out, &list, &facts);
}

/* ---- what is kept */

/* The 46th of 45 equal ones is not lost among them, and what has no row is counted with its sums. */
static void the_largest_are_kept(void **state)
{
	(void)state;
	add_command(1, 1);
	for (int i = 0; i < 45; i++)
		add("small", 5000 + i, 2, 1);
	add("big", 6000, 300, 0);
	add("smaller", 6001, 1.5, 1);
	assert_int_equal(list.row_count, SUMMARY_ROWS);
	assert_string_equal(list.rows[0].title, "big");
	assert_string_equal(list.rows[SUMMARY_ROWS - 1].title, "small");
	assert_string_equal(list.command.title, "bash");
	assert_int_equal(list.processes, 48);
	assert_int_equal(list.rest.processes, 37);
	assert_true(list.rest.peak_bytes == (36 * 2 + 1.5) * MIB);
	assert_true(list.rest.at_end_bytes == 37.0 * MIB);
	assert_int_equal(list.rest.samples, 36 * 4 + 3);
}

static void what_grew_until_its_end_is_large(void **state)
{
	(void)state;
	struct summary_row row = row_of("late", 1, 0, 50);
	row.has_peak = false; /* --no-peak */
	summary_list_add(&list, &row);
	add("big", 2, 40, 0);
	assert_string_equal(list.rows[0].title, "late");
}

static void the_worst_ends_are_kept(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct summary_row row = row_of("worker", 100 + i, 50, 50);

		row.alarm = END_PHRASE_TOLD;
		summary_list_add(&list, &row);
	}
	struct target target = {.end = TARGET_EXITED, .status = SIGKILL, .pid = 7, .title = "killed"};
	summary_list_omit(&list, &target, (struct tally){2, 0, 0}, (struct tally){0}, 1000);
	assert_int_equal(list.alarm_count, SUMMARY_ALARMS);
	assert_int_equal(list.alarms_all, 21);
	assert_string_equal(list.alarms[0].title, "killed");
	assert_string_equal(list.alarms[0].end, "was killed by SIGKILL");
	assert_non_null(
	    strstr(printed(screen, 0), "killed (pid 7) was killed by SIGKILL; 1000 B at its largest\n"));
	assert_ptr_equal(strstr(text, "killed (pid 7)"), text);
	assert_non_null(strstr(text, "\nand 16 more were ended by signals\n"));
}

static void what_is_left_out_is_counted(void **state)
{
	(void)state;
	struct target target = {.end = TARGET_GONE, .pid = 7, .title = "readlink"};
	add_command(1, 1);
	for (int i = 0; i < 488; i++)
		summary_list_omit(&list, &target, (struct tally){3, (uint64_t)(12 << 10) << 8, 0},
		    (struct tally){1, (uint64_t)(4 << 10) << 8, 0}, 0);
	summary_list_omit(&list, &target, (struct tally){0}, (struct tally){0}, 0);
	assert_int_equal(list.alarms_all, 0);
	assert_non_null(strstr(printed(screen, 0),
	    "\n489 processes of under 16 samples left no profile:\n"
	    "  1464 samples, for 5.7 MiB allocated and 1.9 MiB in use at the end\n"));
	assert_widest_line(text, 80 - sizeof("heaptap: ") + 1);
}

/* ---- how it looks */

static void a_table(void **state)
{
	(void)state;
	add("big", 4801, 300, 0);
	add_command(1, 1);
	add("node", 4802, 32, 30);
	assert_string_equal(printed(table, 0),
	    "       peak   error     at end   error  samples   pid  process  profile\n"
	    "  300.0 MiB  +-4.1%  < 1.5 MiB              600  4801  big      heaptap.big.4801.peak.pb.gz\n"
	    "   32.0 MiB   +-12%   30.0 MiB   +-13%       64  4802  node     heaptap.node.4802.exit.pb.gz\n"
	    "    1.0 MiB  +-71%?    1.0 MiB  +-71%?        2  4711  bash     heaptap.bash.4711.exit.pb.gz\n");
}

static void a_narrow_table(void **state)
{
	(void)state;
	add("big", 4801, 300, 0);
	for (int i = 0; i < 12; i++)
		add("node", 4000 + i, 2, 2);
	printed(table, 71);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 71);
	assert_non_null(
	    strstr(printed(table, 71), "  300.0 MiB  < 1.5 MiB      600  heaptap.big.4801.peak.pb.gz\n"));
	assert_non_null(strstr(text, "    6.0 MiB    6.0 MiB       12  and 3 more, added up\n"));
	/* Names that the files do not have stay. */
	free(list.rows[0].peak_path);
	list.rows[0].peak_path = strdup("out/x.pb.gz");
	assert_non_null(strstr(printed(table, 71), "  big   "));
}

static void profiles_in_several_folders(void **state)
{
	(void)state;
	add("big", 4801, 300, 300);
	add("node", 4802, 30, 30);
	const char *folder = NULL;
	assert_int_equal(summary_screen_folder(&list, &folder), 4);
	assert_memory_equal(folder, "out/", 4);
	free(list.rows[1].path);
	list.rows[1].path = strdup("x/heaptap.node.4802.exit.pb.gz");
	folder = NULL;
	assert_int_equal(summary_screen_folder(&list, &folder), 0);
	assert_null(folder);
	assert_non_null(strstr(printed(table, 0), "  out/heaptap.big.4801.exit.pb.gz\n"));
	assert_null(strstr(printed(screen, 0), "show all"));
}

/* The names are the targets' words. */
static void a_title_adds_no_lines(void **state)
{
	(void)state;
	const struct target target = {
	    .end = TARGET_EXITED, .status = SIGKILL, .pid = 7, .title = "a\nheaptap: b\x1b[2J"};
	summary_list_omit(&list, &target, (struct tally){2, 0, 0}, (struct tally){0}, 1000);
	printed(screen, 0);
	assert_ptr_equal(strstr(text, "a?heaptap: b?[2J (pid 7) was killed"), text);
}

static void one_process_has_a_block(void **state)
{
	(void)state;
	add_command(40, 1);
	assert_string_equal(printed(screen, 71),
	    "not profiled: 1 processes\n"
	    "bash (pid 4711) exited with status 0\n"
	    "  peak\n"
	    "  profile at the end: out/heaptap.bash.4711.exit.pb.gz\n"
	    "show the peak: heaptap report out/heaptap.bash.4711.peak.pb.gz\n"
	    "or: go tool pprof -http=: out/heaptap.bash.4711.peak.pb.gz\n");
}

/* What went wrong, the table, how to go on: each once, and no line wraps. */
static void a_whole_screen(void **state)
{
	(void)state;
	add_command(1, 1);
	struct summary_row row = row_of("postgres", 4801, 6, 0);
	row.alarm = END_PHRASE_KILLED;
	strcpy(row.end, "was killed by SIGKILL");
	row.stackless = 3;
	row.placeless = 2;
	running = 2;
	summary_list_add(&list, &row);
	assert_string_equal(printed(screen, 71),
	    "bash (pid 4711) exited with status 0\n"
	    "postgres (pid 4801) was killed by SIGKILL; 6.0 MiB at its largest\n"
	    "not profiled: 1 processes\n"
	    "not profiled: 2 forked children without a free place\n"
	    "2 processes by their peaks; profiles in out/:\n"
	    "     peak     at end  samples  profile\n"
	    "  6.0 MiB  < 1.5 MiB       12  heaptap.postgres.4801.peak.pb.gz\n"
	    "  1.0 MiB    1.0 MiB        2  heaptap.bash.4711.exit.pb.gz\n"
	    "still recorded, to be summed up at their ends: 2 processes\n"
	    "3 of 14 samples without a stack: each profile says why\n"
	    "show the largest: heaptap report out/heaptap.postgres.4801.peak.pb.gz\n"
	    "show all, added up: heaptap report out/\n"
	    "few samples at the peak: record with a smaller period, such as -p 16K\n");
	assert_widest_line(text, 80 - sizeof("heaptap: ") + 1);
}

/* Advice is for the largest, whatever the others are. */
static void advice_is_for_the_row_that_is_read_first(void **state)
{
	(void)state;
	add_command(0, 0);
	assert_non_null(strstr(
	    printed(screen, 0), "\nno samples: record with a smaller period for more, such as -p 16K\n"));
	add("big", 4801, 300, 0);
	assert_null(strstr(printed(screen, 0), "smaller period"));
}

/* A program has an allocator that is not seen: no period shows what it has. */
static void no_advice_beside_what_is_not_seen(void **state)
{
	(void)state;
	add_command(0, 0);
	strcpy(list.unseen_title, "chromium");
	strcpy(list.unseen.what, "the program has a malloc of its own");
	assert_null(strstr(printed(screen, 0), "smaller period"));
}

/* Of large blocks a few samples say enough. */
static void no_advice_where_the_error_is_small(void **state)
{
	(void)state;
	struct summary_row row = row_of("big", 4801, 10, 10);
	row.peak.bytes_variance = 0.5 * MIB * 0.5 * MIB;
	summary_list_add(&list, &row);
	assert_null(strstr(printed(screen, 0), "smaller period"));
	list.rows[0].peak.bytes_variance *= 9;
	assert_non_null(strstr(printed(screen, 0), "few samples at the peak: record with a smaller period"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
	    TEST(the_largest_are_kept),
	    TEST(what_grew_until_its_end_is_large),
	    TEST(the_worst_ends_are_kept),
	    TEST(what_is_left_out_is_counted),
	    TEST(a_table),
	    TEST(a_narrow_table),
	    TEST(profiles_in_several_folders),
	    TEST(a_title_adds_no_lines),
	    TEST(one_process_has_a_block),
	    TEST(a_whole_screen),
	    TEST(advice_is_for_the_row_that_is_read_first),
	    TEST(no_advice_beside_what_is_not_seen),
	    TEST(no_advice_where_the_error_is_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
