/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap status` as it is seen on 80 columns, and its JSON. */
#include "sampler/cmd/status/status_table.h"

#include "sampler/cmd/status/status.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NOW_NS  (INT64_C(1763834640) * 1000000000) /* 2025-11-22 18:04 UTC */
#define HOUR_NS (INT64_C(3600) * 1000000000)

static struct control_loss losses[] = {{"full ring", 10}, {"unwind", 0}, {"no room", 2}};
static struct control_label labels[] = {{"host", "a"}};

static struct control_process processes[] = {
    {.pid = 4711,
        .service = "redis-server",
        .exe = "/usr/bin/redis-server",
        .comm = "redis-server",
        .name = "redis-server *:6379",
        .container_id = "0123456789abcdef0123456789abcdef",
        .since_unix_ns = NOW_NS - HOUR_NS,
        .profiled = true,
        .reason = "",
        .inuse_bytes = 1.25 * (1 << 30),
        .inuse_bytes_error = 2e7,
        .inuse_objects = 1e6,
        .growth = {"grows", 12.3 * (1 << 20), 1 << 20, NOW_NS - HOUR_NS, NOW_NS, 12.3 * (1 << 20),
            1.23 * (1 << 20)},
        .rss_bytes = 1610612736,
        .samples = 12345678,
        .backend = "copy",
        .losses = losses,
        .loss_count = 3,
        .labels = labels,
        .label_count = 1},
    {.pid = 2,
        .service = "a-service-with-a-name-that-is-very-long-indeed",
        .exe = "",
        .comm = "",
        .name = "",
        .container_id = "",
        .since_unix_ns = NOW_NS - 48 * HOUR_NS,
        .profiled = true,
        .reason = "",
        .inuse_bytes = 1023.9 * (1 << 20),
        .inuse_bytes_error = 0,
        .inuse_objects = 3,
        .growth = {"rose", 18.6 * (1 << 20), 1 << 20, NOW_NS - 48 * HOUR_NS, NOW_NS - HOUR_NS, NAN, NAN},
        .rss_bytes = 1023,
        .samples = 999999,
        .backend = "breakpoint"},
    {.pid = 4194304,
        .service = "new",
        .exe = "",
        .comm = "",
        .name = "",
        .container_id = "",
        .since_unix_ns = NOW_NS,
        .profiled = true,
        .reason = "",
        .inuse_bytes = NAN,
        .inuse_bytes_error = NAN,
        .inuse_objects = NAN,
        .growth = {"", NAN, NAN, 0, 0, NAN, NAN},
        .backend = ""},
    {.pid = 1,
        .service = "init",
        .exe = "/sbin/init",
        .comm = "init",
        .name = "",
        .container_id = "",
        .reason = "pid 1 is never profiled",
        .inuse_bytes = NAN,
        .inuse_bytes_error = NAN,
        .inuse_objects = NAN,
        .growth = {"", NAN, NAN, 0, 0, NAN, NAN},
        .backend = ""},
};

static struct control_denied denied[] = {
    {"/usr/sbin/x", "0123456789abcdef", NOW_NS - HOUR_NS, "3 deaths by SIGSEGV in 10 minutes"}};
static const char *notes[] = {"heaptap.conf:7: period is no size: the old configuration is in force"};

static const struct control_list list = {.daemon = {.pid = 99,
                                             .since_unix_ns = NOW_NS - 50 * HOUR_NS - 60,
                                             .cpu_ns = UINT64_C(1800) * 1000000000,
                                             .rss_bytes = 64 << 20,
                                             .disk_bytes = 300 << 20,
                                             .disk_budget_bytes = 1 << 30,
                                             .version = "0.1.0",
                                             .store = "/var/lib/heaptap/store",
                                             .config = "",
                                             .off = ""},
    .processes = processes,
    .process_count = 4,
    .denied = denied,
    .denied_count = 1,
    .notes = notes,
    .note_count = 1};

static struct spool_list_row rows[] = {
    {.target = "one",
        .counters = {.sent = 120, .retried = 4, .dropped = 3, .given_up = 5, .passed_over = 6, .resent = 1},
        .bytes = 3 << 19,
        .count = 2,
        .oldest_ns = NOW_NS - HOUR_NS},
    {.target = "two", .counters = {.denied = 3}},
};
static const struct spool_list spools = {.rows = rows, .count = 2};

/* What is printed at that width; static. */
static const char *print(int width)
{
	static char *text;
	size_t bytes;

	free(text);
	FILE *out = open_memstream(&text, &bytes);
	const struct screen screen = {.out = out, .width = width};
	status_table_print(&screen, &list, &spools, NOW_NS);
	fclose(out);
	return text;
}

static void the_table(void **state)
{
	static const char wanted[] =
	    "heaptap daemon  pid 99, version 0.1.0, since 2025-11-20 16:03:59 (2 d 2 h)\n"
	    "  uses    CPU 1800.0 s (1.00% of one), memory 64.0 MiB, disk 300.0 MiB of 1.0 GiB\n"
	    "  store   /var/lib/heaptap/store\n"
	    "  denied  /usr/sbin/x: 3 deaths by SIGSEGV in 10 minutes, since 2025-11-22 17:04\n"
	    "          (with library 0123456789ab)\n"
	    "  note    heaptap.conf:7: period is no size: the old configuration is in force\n"
	    "  push    one: 120 sent, 3 dropped, 5 given up, 6 passed over; 2 wait (1.5 MiB),\n"
	    "          the oldest for 1 h 0 min\n"
	    "  push    two: 0 sent; the server refuses the token\n"
	    "\n"
	    "service                 pid  since  in use    +-     RSS growth/h samples by\n"
	    "redis-server           4711  17:04    1.2G  1.5%    1.5G   +12.3M   12.3M copy\n"
	    "  grows since 17:04:00, by 12.3 MiB an hour +- 10 %; in container 0123456789ab;\n"
	    "  12 samples lost: full ring 10, no room 2\n"
	    "a-servic..ng-indeed       2 Nov 20 1023.9M exact   1023B           999999 breakpoint\n"
	    "  rose by 18.6 MiB from 2025-11-20 18:04 to 17:04:00 and is flat since\n"
	    "new                 4194304  18:04                              ?       0 \n"
	    "\n"
	    "not profiled            pid  why\n"
	    "init                      1  pid 1 is never profiled\n";

	assert_string_equal(print(80), wanted);
}

/* Only where the service does not: 80 columns have no room for more. */
static void names_tell_processes_of_a_service_apart(void **state)
{
	struct control_process some[3] = {processes[0], processes[0], processes[1]};
	const struct control_list pair = {.daemon = list.daemon, .processes = some, .process_count = 3};
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	const struct screen screen = {.out = out, .width = 80};

	some[0].container_id = "";
	some[0].loss_count = 0;
	some[1].pid = 4712;
	some[1].name = "redis-server: saving";
	some[2].name = "another program";
	status_table_print(&screen, &pair, &spools, NOW_NS);
	fclose(out);
	assert_non_null(strstr(text, "copy\n  redis-server *:6379; grows since "));
	assert_non_null(strstr(text, "copy\n  redis-server: saving; grows since "));
	assert_null(strstr(text, "another program"));
	free(text);
}

/* Without a terminal no name is cut; and no width makes it write beyond. */
static void other_widths(void **state)
{
	assert_non_null(strstr(print(0), "a-service-with-a-name-that-is-very-long-indeed "));
	assert_non_null(strstr(print(200), "a-service-with-a-name-that-is-very-long-indeed "));
	assert_non_null(strstr(print(10), "\nnew      4194304 "));
}

/* Without a terminal: only its own row is wider than the others. */
static void a_very_long_name_moves_no_other_row(void **state)
{
	struct control_process two[2] = {processes[0], processes[0]};
	const struct control_list pair = {.daemon = list.daemon, .processes = two, .process_count = 2};
	char *text, name[128] = "";
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	const struct screen screen = {.out = out};

	memset(name, 'n', sizeof(name) - 1);
	two[1].service = name;
	status_table_print(&screen, &pair, &spools, NOW_NS);
	fclose(out);
	assert_non_null(strstr(text, name));
	assert_non_null(strstr(text, "\nredis-server                                        4711 "));
	free(text);
}

static void it_says_that_everything_is_off(void **state)
{
	struct control_list off = list;
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	const struct screen screen = {.out = out, .width = 80};

	off.daemon.off = "/run/heaptap/off";
	status_table_print(&screen, &off, &spools, NOW_NS);
	fclose(out);
	assert_non_null(strstr(text,
	    "\n  OFF     nothing is sampled while /run/heaptap/off is there: heaptap enable\n          "
	    "--now\n"));
	free(text);
}

static void no_line_is_wider_than_the_screen(void **state)
{
	static const char *long_notes[] = {"not every process of this machine is seen by the daemon, for it "
	                                   "runs in a pid namespace of its own: give it --pid=host"};
	const struct control_list none = {.daemon = {.pid = 99,
	                                      .version = "",
	                                      .store = "",
	                                      .config = "",
	                                      .off = "/run/heaptap/some/folder/of/a/test/off"},
	    .notes = long_notes,
	    .note_count = 1};
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	const struct screen screen = {.out = out, .width = 80};

	status_table_print(&screen, &none, &spools, NOW_NS);
	fclose(out);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_in_range(strlen(line), 0, 80);
	free(text);
}

static void the_json(void **state)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	status_write_json(out, &list, &spools, NOW_NS);
	fclose(out);
	assert_non_null(strstr(text,
	    "\"daemon\":{\"pid\":99,\"since\":\"2025-11-20T16:03:59Z\",\"cpu_seconds\":1800.000,"
	    "\"rss_bytes\":67108864,\"disk_bytes\":314572800}"));
	assert_non_null(strstr(text,
	    "{\"pid\":4711,\"service\":\"redis-server\",\"exe\":\"/usr/bin/"
	    "redis-server\",\"comm\":\"redis-server\",\"name\":\"redis-server *:6379\","
	    "\"container_id\":\"0123456789abcdef0123456789abcdef\",\"since\":\"2025-11-22T17:04:00Z\","
	    "\"profiled\":true,"
	    "\"reason\":\"\",\"inuse_bytes\":1342177280,\"inuse_bytes_error\":20000000,\"inuse_objects\":"
	    "1000000,"
	    "\"rss_bytes\":1610612736,\"growth\":\"grows\",\"growth_bytes\":12897485,"
	    "\"growth_bytes_error\":1048576,\"growth_since\":\"2025-11-22T17:04:00Z\","
	    "\"growth_until\":\"2025-11-22T18:04:00Z\",\"growth_significant\":true,"
	    "\"growth_bytes_per_hour\":12897485,\"growth_bytes_per_hour_error\":1289748,"
	    "\"samples\":12345678,\"lost\":{\"full ring\":10,\"unwind\":0,\"no "
	    "room\":2},\"backend\":\"copy\","
	    "\"labels\":{\"host\":\"a\"}}"));
	assert_non_null(strstr(text,
	    "{\"name\":\"one\",\"sent\":120,\"retried\":4,\"rejected\":0,\"dropped\":3,"
	    "\"given_up\":5,\"passed_over\":6,\"resent\":1,\"denied\":0,"
	    "\"spool_profiles\":2,\"spool_bytes\":1572864,\"oldest_seconds\":3600}"));
	assert_non_null(strstr(text, "\"spool_bytes\":0,\"oldest_seconds\":null}"));
	assert_non_null(strstr(text,
	    "\"since\":null,\"profiled\":false,\"reason\":\"pid 1 is never profiled\","
	    "\"inuse_bytes\":null,"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_table),
	    cmocka_unit_test(names_tell_processes_of_a_service_apart),
	    cmocka_unit_test(other_widths),
	    cmocka_unit_test(a_very_long_name_moves_no_other_row),
	    cmocka_unit_test(it_says_that_everything_is_off),
	    cmocka_unit_test(no_line_is_wider_than_the_screen),
	    cmocka_unit_test(the_json),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
