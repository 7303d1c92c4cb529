/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/memory_high.h"

#include "pprof/text/clock.h"
#include "sampler/linux/proc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFRESH_NS UINT64_C(1000000000)

/* Version 1 reports a little less than 2^63 for no limit, depending on the page size. */
#define LIMIT_MOST (UINT64_C(1) << 62)

static const struct files {
	const char *mount, *limit, *usage, *hard;
} files_of[] = {
    [1] = {"/sys/fs/cgroup/memory", "memory.soft_limit_in_bytes", "memory.usage_in_bytes",
        "memory.limit_in_bytes"},
    [2] = {"/sys/fs/cgroup", "memory.high", "memory.current", "memory.max"},
};

/* ---- reading */

static int open_file(const struct memory_high_level *level, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", level->folder, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_text(int fd, char *text, size_t text_bytes)
{
	ssize_t got = fd < 0 ? -1 : pread(fd, text, text_bytes - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* "1048576" or "max". False: unreadable. */
static bool read_number(int fd, uint64_t *number)
{
	char text[64];

	if (!read_text(fd, text, sizeof(text)))
		return false;
	*number = *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : MEMORY_HIGH_NO_LIMIT;
	return true;
}

static bool read_file(const struct memory_high_level *level, const char *name, uint64_t *number)
{
	int fd = open_file(level, name);
	bool found = read_number(fd, number);

	if (fd >= 0)
		close(fd);
	return found;
}

/* How often the cgroup was above memory.high: never less than before. */
static uint64_t read_events(const struct memory_high_level *level)
{
	char text[1024];
	uint64_t count = level->seen;

	if (read_text(level->fd, text, sizeof(text)))
		count = proc_status_number(text, "\nhigh ", 10, level->seen);
	return count;
}

static uint64_t read_open(int fd)
{
	uint64_t number;

	return read_number(fd, &number) && number != MEMORY_HIGH_NO_LIMIT ? number : 0;
}

/* ---- levels */

static void close_level(struct memory_high_level *level)
{
	if (level->fd >= 0)
		close(level->fd);
	if (level->highest_fd >= 0)
		close(level->highest_fd);
	level->fd = level->highest_fd = -1;
	level->above = false;
}

/* Earlier crossings do not count. */
static void open_level(int version, struct memory_high_level *level)
{
	if (version == 1) {
		level->fd = open_file(level, files_of[1].usage);
		level->highest_fd = open_file(level, "memory.max_usage_in_bytes");
		level->seen = read_open(level->highest_fd);
		level->above = read_open(level->fd) >= level->limit_bytes;
		return;
	}
	level->fd = open_file(level, "memory.events.local");
	if (level->fd < 0)
		level->fd = open_file(level, "memory.events");
	level->seen = 0;
	level->seen = read_events(level);
}

/* Limits may be set, changed and removed at any time. */
static void refresh(struct memory_high *watch)
{
	size_t readable = 0, limited = 0;

	for (size_t i = 0; i < watch->count; i++) {
		struct memory_high_level *level = &watch->levels[i];
		uint64_t limit = MEMORY_HIGH_NO_LIMIT;

		readable += read_file(level, files_of[watch->version].limit, &limit);
		if (limit >= LIMIT_MOST)
			limit = MEMORY_HIGH_NO_LIMIT;
		if (limit == MEMORY_HIGH_NO_LIMIT)
			close_level(level);
		level->limit_bytes = limit;
		if (limit != MEMORY_HIGH_NO_LIMIT && level->fd < 0)
			open_level(watch->version, level);
		limited += level->fd >= 0;
	}
	watch->answer = limited ? MEMORY_HIGH_WATCHED : readable ? MEMORY_HIGH_UNSET : MEMORY_HIGH_UNREADABLE;
}

/* The cgroup itself first, the mount point last: in a container that is the container's own. */
static void find_levels(struct memory_high *watch, const char *mount)
{
	size_t length = strlen(watch->cgroup), mount_bytes = strlen(mount);

	while (length && watch->cgroup[length - 1] == '/')
		length--;
	if (strstr(watch->cgroup, "/..")) /* the cgroup is outside our cgroup namespace */
		return;
	while (watch->count < MEMORY_HIGH_LEVELS && mount_bytes + length < sizeof(watch->levels[0].folder)) {
		struct memory_high_level *level = &watch->levels[watch->count++];

		memcpy(level->folder, mount, mount_bytes);
		memcpy(level->folder + mount_bytes, watch->cgroup, length);
		level->folder[mount_bytes + length] = '\0';
		level->mount_bytes = mount_bytes;
		level->limit_bytes = MEMORY_HIGH_NO_LIMIT;
		level->fd = level->highest_fd = -1;
		if (!length)
			break;
		while (length && watch->cgroup[--length] != '/')
			;
	}
}

static bool look_at_events(struct memory_high_level *level, uint64_t *usage_bytes)
{
	uint64_t events = read_events(level);
	bool happened = events > level->seen;

	level->seen = events;
	if (!happened && !level->above)
		return false;
	if (!read_file(level, files_of[2].usage, usage_bytes))
		*usage_bytes = 0;
	return happened;
}

static bool look_at_usage(struct memory_high_level *level, uint64_t *usage_bytes)
{
	uint64_t highest = read_open(level->highest_fd);

	*usage_bytes = read_open(level->fd);
	bool spiked = highest > level->seen && highest >= level->limit_bytes;
	if (spiked && *usage_bytes < level->limit_bytes && !level->above)
		*usage_bytes = highest;
	level->seen = highest;
	return spiked || *usage_bytes >= level->limit_bytes;
}

static void look_at_level(struct memory_high *watch, struct memory_high_level *level)
{
	uint64_t usage_bytes = 0;
	bool beyond =
	    watch->version == 1 ? look_at_usage(level, &usage_bytes) : look_at_events(level, &usage_bytes);

	if (beyond && !level->above) {
		watch->crossings++;
		watch->crossed = level;
		watch->crossed_bytes = usage_bytes;
	}
	level->above =
	    beyond || (level->above && usage_bytes >= level->limit_bytes - level->limit_bytes / 10);
}

/* ---- for the caller */

void memory_high_look(struct memory_high *watch, uint64_t now_ns)
{
	if (watch->looked_ns == now_ns)
		return;
	watch->looked_ns = now_ns;
	if (!watch->refreshed_ns || now_ns - watch->refreshed_ns >= REFRESH_NS) {
		watch->refreshed_ns = now_ns;
		refresh(watch);
	}
	watch->above = false;
	for (size_t i = 0; i < watch->count; i++) {
		struct memory_high_level *level = &watch->levels[i];

		if (level->fd >= 0)
			look_at_level(watch, level);
		watch->above = watch->above || level->above;
	}
}

struct memory_high *memory_high_get(
    struct memory_high **list, int version, const char *cgroup, const char *mount, uint64_t now_ns)
{
	struct memory_high *watch;

	for (watch = *list; watch; watch = watch->next)
		if (watch->version == version && strcmp(watch->cgroup, cgroup) == 0)
			break;
	if (watch) {
		watch->users++;
		return watch;
	}
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return NULL;
	watch->users = 1;
	watch->version = version == 1 ? 1 : 2;
	snprintf(watch->cgroup, sizeof(watch->cgroup), "%s", cgroup);
	watch->next = *list;
	watch->link = list;
	if (*list)
		(*list)->link = &watch->next;
	*list = watch;
	find_levels(watch, mount ? mount : files_of[watch->version].mount);
	memory_high_look(watch, now_ns);
	return watch;
}

void memory_high_put(struct memory_high *watch)
{
	if (!watch || --watch->users)
		return;
	*watch->link = watch->next;
	if (watch->next)
		watch->next->link = watch->link;
	for (size_t i = 0; i < watch->count; i++)
		close_level(&watch->levels[i]);
	free(watch);
}

const struct memory_high_level *memory_high_limited(const struct memory_high *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->levels[i].fd >= 0)
			return &watch->levels[i];
	return NULL;
}

uint64_t memory_high_hard_limit(const struct memory_high *watch)
{
	uint64_t least = MEMORY_HIGH_NO_LIMIT, limit;

	for (size_t i = 0; i < watch->count; i++)
		if (read_file(&watch->levels[i], files_of[watch->version].hard, &limit) && limit < least)
			least = limit;
	return least < LIMIT_MOST ? least : MEMORY_HIGH_NO_LIMIT;
}

const char *memory_high_name(const struct memory_high_level *level)
{
	const char *name = level->folder + level->mount_bytes;

	return *name ? name : "/";
}
