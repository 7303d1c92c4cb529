/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints by name: the part of event.h that reads tracefs. */
#include "sampler/perf/event.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const roots[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

static bool take_part(const char **at, char part[EVENT_TRACEPOINT_PART_BYTES])
{
	size_t length = 0;

	while (isalnum((unsigned char)**at) || **at == '_' || **at == '-') {
		if (length == EVENT_TRACEPOINT_PART_BYTES - 1)
			return false;
		part[length++] = *(*at)++;
	}
	part[length] = '\0';
	return length > 0;
}

bool event_tracepoint_parse(const char *text, struct event_tracepoint *name)
{
	memset(name, 0, sizeof(*name));
	if (!take_part(&text, name->subsystem) || *text++ != ':' || !take_part(&text, name->name))
		return false;
	if (!*text)
		return true;
	if (strcmp(text, ":u") != 0 && strcmp(text, ":k") != 0 && strcmp(text, ":uk") != 0 &&
	    strcmp(text, ":ku") != 0)
		return false;
	snprintf(name->modifiers, sizeof(name->modifiers), "%s", strcmp(text, ":ku") == 0 ? "uk" : text + 1);
	return true;
}

/* The folder of all events. -EACCES if one exists that we may not read, else -ENODEV. */
static int open_root(void)
{
	int error = -ENODEV;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		int fd = open(roots[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
		if (errno == EACCES || errno == EPERM)
			error = -EACCES;
	}
	return error;
}

int event_tracepoint_find(const struct event_tracepoint *name, uint64_t *id)
{
	char path[2 * EVENT_TRACEPOINT_PART_BYTES + 8], text[24] = "";
	int root = open_root();

	if (root < 0)
		return root;
	snprintf(path, sizeof(path), "%s/%s/id", name->subsystem, name->name);
	int fd = openat(root, path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? -errno : 0;
	close(root);
	if (fd < 0)
		return error == -EPERM ? -EACCES : error == -EACCES ? error : -ENOENT;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0 || !isdigit((unsigned char)text[0]))
		return -ENOENT;
	*id = strtoull(text, NULL, 10);
	return 0;
}

/* An entry with an id in it is an event; the others are files for whole subsystems. */
static void each_of(
    int root, const char *subsystem, void (*found)(void *context, const char *name), void *context)
{
	int fd = openat(root, subsystem, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!folder && fd >= 0)
		close(fd);
	while (folder && (entry = readdir(folder))) {
		char text[2 * EVENT_TRACEPOINT_PART_BYTES + 8];
		struct event_tracepoint name;

		snprintf(text, sizeof(text), "%.63s:%.63s", subsystem, entry->d_name);
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && event_tracepoint_parse(text, &name))
			found(context, text);
	}
	if (folder)
		closedir(folder);
}

int event_tracepoint_each(void (*found)(void *context, const char *name), void *context)
{
	int root = open_root();

	if (root < 0)
		return root;
	DIR *folder = fdopendir(root);
	const struct dirent *entry;
	if (!folder) {
		close(root);
		return -ENOMEM;
	}
	while ((entry = readdir(folder)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    strcmp(entry->d_name, "ftrace") != 0)
			each_of(root, entry->d_name, found, context);
	closedir(folder);
	return 0;
}
