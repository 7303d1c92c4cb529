/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/events/event_process.h"

#include "sampler/linux/proc.h"
#include "sampler/snapshot/snapshot_series.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct event_process *event_processes_find(const struct event_processes *subjects, pid_t pid)
{
	for (struct event_process *s = subjects->list; s; s = s->next)
		if (s->pid == pid && !s->closed)
			return s;
	return NULL;
}

static void discard(struct event_process *s)
{
	if (s->pidfd >= 0)
		close(s->pidfd);
	maps_free(s->maps);
	stacks_free(s->stacks);
	snapshot_series_free(s->series);
	threads_free(s->threads);
	for (size_t i = 0; i < EVENTS_MAX; i++)
		event_book_free(s->books[i]);
	free(s);
}

struct event_process *event_processes_add(
    struct event_processes *subjects, pid_t pid, const struct event_process *parent, uint64_t first_ns)
{
	struct event_process *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->pid = pid;
	s->pidfd = -1;
	s->first_ns = first_ns;
	s->maps_retry_ns = maps_retry_ns(0, false);
	s->maps = parent ? maps_copy(parent->maps, pid) : maps_new(subjects->modules, pid, true);
	s->stacks = stacks_new();
	if (!s->maps || !s->stacks) {
		discard(s);
		return NULL;
	}
	if (parent) {
		memcpy(s->title, parent->title, sizeof(s->title));
		memcpy(s->name, parent->name, sizeof(s->name));
		memcpy(s->comm, parent->comm, sizeof(s->comm));
	}
	s->next = subjects->list;
	subjects->list = s;
	subjects->count++;
	return s;
}

void event_processes_remove(struct event_processes *subjects, struct event_process *subject)
{
	struct event_process **link = &subjects->list;
	while (*link != subject)
		link = &(*link)->next;
	*link = subject->next;
	subjects->count--;
	discard(subject);
}

void event_processes_fini(struct event_processes *subjects)
{
	while (subjects->list)
		event_processes_remove(subjects, subjects->list);
}

bool event_process_read_maps(struct event_process *s, uint64_t now_ns, uint64_t every_ns)
{
	if (now_ns - s->maps_read_ns < every_ns)
		return false;
	s->maps_read_ns = now_ns;
	struct maps *fresh = maps_new(maps_store(s->maps), s->pid, true);
	if (!fresh || maps_read_proc(fresh) != 0 || maps_count(fresh) == 0) {
		maps_free(fresh); /* it has just ended */
		return false;
	}
	maps_free(s->maps);
	s->maps = fresh;
	return true;
}

/* ---- who it is */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool leads_to(const char *path, const struct stat *file)
{
	struct stat status;
	return stat(path, &status) == 0 && status.st_dev == file->st_dev && status.st_ino == file->st_ino;
}

/* Is there a file of that name, beside the executable or where programs are looked for, that is the
 * executable? */
static bool is_called(const struct event_process *s, const char *called, const struct stat *file)
{
	char path[PATH_MAX + 64], list[4096];
	const char *search = getenv("PATH");
	snprintf(path, sizeof(path), "%.*s%s", (int)(last_part(s->name) - s->name), s->name, called);
	if (leads_to(path, file))
		return true;
	snprintf(list, sizeof(list), "%s", search ? search : "/usr/local/bin:/usr/bin:/bin");
	for (char *rest = list, *folder; (folder = strsep(&rest, ":"));) {
		snprintf(path, sizeof(path), "%s/%s", folder, called);
		if (leads_to(path, file))
			return true;
	}
	return false;
}

/* A program with several names goes by the one it was called by; a script by its interpreter. The kernel
 * keeps 15 letters of what was called. */
static void find_title(struct event_process *s, const char *exe)
{
	struct stat file;
	const char *title = last_part(s->name);
	if (s->comm[0] && strncmp(s->comm, title, sizeof(s->comm) - 1) != 0 && stat(exe, &file) == 0 &&
	    is_called(s, s->comm, &file))
		title = s->comm;
	snprintf(s->title, sizeof(s->title), "%.63s", title);
}

/* Of one that is gone: the first file that it executed. */
static void name_from_maps(struct event_process *s)
{
	for (size_t i = 0; i < maps_count(s->maps) && !s->name[0]; i++) {
		const struct map *map = maps_at(s->maps, i);
		if (map->kind == MAP_KIND_FILE && !strstr(map_path(map), ".so"))
			snprintf(s->name, sizeof(s->name), "%s", map_path(map));
	}
	find_title(s, s->name);
	if (!s->title[0])
		snprintf(s->title, sizeof(s->title), "%.63s", s->comm);
}

/* Samples may be read when the process executes another program already. */
static bool maps_file(const struct event_process *s, const char *path)
{
	for (size_t i = 0; i < maps_count(s->maps); i++)
		if (strcmp(map_path(maps_at(s->maps, i)), path) == 0)
			return true;
	return false;
}

/* Of one that we did not see start: a record of the kernel's would have told. */
static void read_comm(struct event_process *s)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)s->pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(s->comm, sizeof(s->comm), file))
		s->comm[strcspn(s->comm, "\n")] = '\0';
	fclose(file);
}

void event_process_look(struct event_process *s)
{
	char path[64];
	if (s->looked)
		return;
	s->looked = true;
	s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)s->pid);
	char name[PROCESS_NAME_BYTES];
	ssize_t length = s->pidfd >= 0 ? readlink(path, name, sizeof(name) - 1) : -1;
	name[length > 0 ? length : 0] = '\0';
	bool mapped = maps_file(s, name);
	proc_strip_deleted(name);
	if (length <= 0 || !(mapped || maps_file(s, name))) {
		name_from_maps(s);
		return;
	}
	memcpy(s->name, name, sizeof(name));
	if (!s->comm[0])
		read_comm(s);
	find_title(s, path);
}

bool event_process_has_ended(struct event_process *s)
{
	int pidfd = s->pidfd >= 0 ? s->pidfd : (int)syscall(SYS_pidfd_open, s->pid, 0);
	/* No descriptor is no proof: there may be none left, for thousands of processes have one each. */
	if (pidfd < 0)
		return errno == ESRCH || (kill(s->pid, 0) != 0 && errno == ESRCH);
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	bool ended = poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLIN;
	if (pidfd != s->pidfd)
		close(pidfd);
	return ended;
}

bool event_process_has_samples(const struct event_process *s)
{
	for (size_t i = 0; i < EVENTS_MAX; i++)
		if (s->books[i])
			return true;
	return false;
}
