/* SPDX-License-Identifier: Apache-2.0 */
/* Reading /proc/PID/maps: its lines, what lies between two of them, and the time of the next reading. */
#include "sampler/unwind/maps.h"

#include "pprof/table/index.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	RETRY_NS = 20 * 1000000,
	RETRY_MAX_NS = 1000 * 1000000,
};

uint64_t maps_retry_ns(uint64_t before_ns, bool helped)
{
	if (helped || before_ns < RETRY_NS)
		return RETRY_NS;
	return before_ns < RETRY_MAX_NS / 2 ? before_ns * 2 : RETRY_MAX_NS;
}

bool maps_parse_line(const char *line, struct map_range *range)
{
	uint64_t end;
	char prot[5];
	int path_at = 0;

	memset(range, 0, sizeof(*range));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
	        &range->start, &end, prot, &range->pgoff, &range->major, &range->minor, &range->ino,
	        &path_at) != 7 ||
	    end <= range->start || strlen(prot) != 4)
		return false;
	range->len = end - range->start;
	range->prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
	    (prot[2] == 'x' ? PROT_EXEC : 0);
	range->path = line + path_at;
	return true;
}

/* The reading of one file. A line is needed until two more have been read. */
struct reading {
	int (*add)(void *context, const struct map_range *range);
	void *context;
	char *lines[3];
	size_t room[3];
	unsigned now;                  /* lines[now] is the newest */
	struct map_range before;       /* of the line before it; len 0: none */
	struct map_range held, around; /* anonymous code behind a mapping of a file; held.len 0: none */
};

static bool is_executable(const char *line)
{
	const char *prot = strchr(line, ' ');

	return prot && memchr(prot, '\0', 4) == NULL && prot[3] == 'x';
}

static bool is_same_file(const struct map_range *a, const struct map_range *b)
{
	return a->ino && a->ino == b->ino && a->major == b->major && a->minor == b->minor &&
	    strcmp(a->path, b->path) == 0;
}

static int hand_over(struct reading *reading, const struct map_range *range)
{
	const int err = range->prot & PROT_EXEC ? reading->add(reading->context, range) : 0;

	return err == -ENOSPC ? 0 : err;
}

/* Adds the range that waited for the next line, which is NEXT (NULL: there is none). */
static int add_held(struct reading *reading, const struct map_range *next)
{
	struct map_range held = reading->held;

	if (!held.len)
		return 0;
	reading->held.len = 0;
	held.around = next && is_same_file(next, &reading->around) ? &reading->around : NULL;
	return hand_over(reading, &held);
}

static bool follows_file(const struct map_range *range, const struct map_range *before)
{
	return before->len && before->ino && maps_kind_of(before->path) == MAP_KIND_FILE &&
	    range->prot & PROT_EXEC && maps_kind_of(range->path) == MAP_KIND_ANON;
}

static int take_line(struct reading *reading, const char *line)
{
	struct map_range range;
	int err;

	if (!maps_parse_line(line, &range)) {
		reading->before.len = 0; /* its line would not be kept */
		return add_held(reading, NULL);
	}
	err = add_held(reading, &range);
	if (!err && follows_file(&range, &reading->before)) {
		reading->held = range;
		reading->around = reading->before;
	} else if (!err) {
		err = hand_over(reading, &range);
	}
	reading->before = range;
	return err;
}

int maps_read_lines(
    pid_t pid, int (*add)(void *context, const struct map_range *range), void *context, uint64_t *hash)
{
	struct reading reading = {.add = add, .context = context};
	FILE *file = proc_open_text(pid, "maps");
	ssize_t len;
	int err = 0;

	if (!file)
		return -errno;
	*hash = index_seed();
	errno = 0;
	while (!err && (len = getline(&reading.lines[reading.now], &reading.room[reading.now], file)) > 0) {
		char *line = reading.lines[reading.now];

		if (is_executable(line))
			*hash = index_mix_bytes(*hash, line, (size_t)len);
		if (line[len - 1] == '\n')
			line[len - 1] = 0;
		if (add)
			err = take_line(&reading, line);
		reading.now = (reading.now + 1) % 3;
	}
	if (!err)
		err = add_held(&reading, NULL);
	if (!err && ferror(file))
		err = errno ? -errno : -EIO;
	/* If the process gives up its address space meanwhile, the list just ends. The list is complete if
	 * there still is a first line afterwards. */
	rewind(file);
	if (!err && getc(file) == EOF)
		err = -ESRCH;
	for (unsigned i = 0; i < 3; i++)
		free(reading.lines[i]);
	fclose(file);
	return err;
}
