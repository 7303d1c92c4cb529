/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the store of a machine's profiles. They say all that a list of the store needs:
 *
 *	STORE/SERVICE/2026-11-22/HHMMSS.PID.KIND.pb.gz
 *
 * Times are UTC. SERVICE is a service_name. KIND begins with a word that says what the file is, and
 * may go on with `-` and more words:
 *
 *	heap          a snapshot of what is in use: by interval, by hand
 *	heap-rss      the same after a threshold was crossed (rss, inuse...) or the program asked
 *	peak          the heap at its largest so far; a later one of the same process takes its place
 *	exit          the end of the process, and oom: its end by the OOM killer
 *	delta         what was allocated between two snapshots
 *	event-NAME    of a perf event
 *
 * A second file of the same name gets `-2` behind KIND. Pure functions over text. Other names are not ours.
 */
#ifndef PPROF_STORE_STORE_NAME_H
#define PPROF_STORE_STORE_NAME_H

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
	STORE_OTHER, /* an unknown word */
	STORE_PEAK,
	STORE_EXIT,
	STORE_OOM,
};

struct store_name {
	int64_t time_s; /* since 1970 */
	pid_t pid;
	char kind[STORE_NAME_KIND_BYTES]; /* "heap-rss" */
	enum store_class class;
};

/* False for any other name. */
bool store_name_parse(const char *day, const char *file, struct store_name *name);

/* Writes the names of the folder and of the file; does not read name->class. 0, or -EINVAL if
 * store_name_parse() would not take them. */
int store_name_format(
    const struct store_name *name, char day[STORE_NAME_DAY_BYTES], char file[STORE_NAME_FILE_BYTES]);

/* Sets KIND and its class by the scheduler's name of a snapshot: "0042", "0042-rss", "0042-delta", "peak",
 * "exit", "cpu-clock-0042". The number is left out, and other bytes are cleaned. oom: the OOM killer ended
 * the process, so "exit" becomes "oom". */
void store_name_of_snapshot(const char *snapshot, bool oom, struct store_name *name);

/* Seconds since 1970 of midnight UTC of "2026-11-22". False if there is no such day. */
bool store_name_day(const char *day, int64_t *time_s);

/* Names of services in the store and in labels: letters, digits and `._@-`, at most 128 bytes. */
enum { SERVICE_NAME_BYTES = 128 + 1 };

/* Replaces each other byte, and a dot or a dash at the beginning, by `_`: a folder has this name, and no
 * command may take it for an option. An empty text becomes "unknown". Pure. */
void service_name_clean(const char *text, char name[SERVICE_NAME_BYTES]);

/* Is it what service_name_clean() makes? */
bool service_name_is_good(const char *name);

#endif
