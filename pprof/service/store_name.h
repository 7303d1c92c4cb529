/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the store of a machine's profiles, from which alone any index can be made:
 *
 *	STORE/SERVICE/2026-11-22/HHMMSS.PID.KIND.pb.gz
 *
 * Times are UTC. SERVICE is a name of service_name.h. KIND begins with a word that says what it is, and may
 * go on with `-` and words about it:
 *
 *	heap          a snapshot of what is in use: by interval, by hand
 *	heap-rss      the same because a threshold was crossed (rss, inuse...), or the program asked
 *	peak          the heap at its largest so far; a later one of the same process takes its place
 *	exit          the end of the process, and oom: its end by the OOM killer
 *	delta         what was allocated between two snapshots
 *	event-NAME    of a perf event
 *
 * A second file with a name gets `-2` behind KIND, and so on. Pure functions over text; what they do not
 * accept was not named by us, and is nobody's business here.
 */
#ifndef PPROF_SERVICE_STORE_NAME_H
#define PPROF_SERVICE_STORE_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	STORE_NAME_DAY_BYTES = sizeof("2026-11-22"),
	STORE_NAME_KIND_BYTES = 96,
	STORE_NAME_FILE_BYTES = 128,
};

/* What the first word of KIND says. */
enum store_class {
	STORE_HEAP,
	STORE_HEAP_CAUSE, /* heap-rss */
	STORE_DELTA,
	STORE_EVENT,
	STORE_OTHER, /* a word that this version does not know */
	STORE_PEAK,
	STORE_EXIT,
	STORE_OOM,
	STORE_CLASSES,
};

struct store_name {
	int64_t time_s; /* since 1970 */
	pid_t pid;
	char kind[STORE_NAME_KIND_BYTES]; /* "heap-rss" */
	enum store_class class;
};

/* false: not such a name. */
bool store_name_parse(const char *day, const char *file, struct store_name *name);

/* The names of its folder and file; class is not looked at. 0, or -EINVAL if store_name_parse() would not
 * take them. */
int store_name_format(
    const struct store_name *name, char day[STORE_NAME_DAY_BYTES], char file[STORE_NAME_FILE_BYTES]);

/* Sets KIND and its class by the scheduler's name of a snapshot: "0042", "0042-rss", "0042-delta", "peak",
 * "exit", "cpu-clock-0042". The number is left out, and other bytes are cleaned. oom: the OOM killer ended
 * the process, so "exit" becomes "oom". */
void store_name_of_snapshot(const char *snapshot, bool oom, struct store_name *name);

/* Seconds since 1970 of midnight UTC of "2026-11-22"; false: no such day. */
bool store_name_day(const char *day, int64_t *time_s);

#endif
