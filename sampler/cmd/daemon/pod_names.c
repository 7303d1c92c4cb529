/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/pod_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool pod_names_parse(struct pod_names *names, const char *folder, const char *uid)
{
	/* The names of Kubernetes contain no '_'. */
	const char *pod = strchr(folder, '_'), *end = strrchr(folder, '_');

	*names = (struct pod_names){0};
	if (!*uid || !pod || pod == folder || end <= pod + 1 || strcmp(end + 1, uid) != 0 ||
	    pod - folder >= POD_NAMES_BYTES || end - pod > POD_NAMES_BYTES)
		return false;
	memcpy(names->namespace, folder, (size_t)(pod - folder));
	memcpy(names->pod, pod + 1, (size_t)(end - pod - 1));
	return true;
}

/* Docker's logs are links to /var/lib/docker/containers/ID/ID-json.log. */
static bool has_link_to(int folder_fd, const char *name, const char *container_id)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (fd >= 0 && !folder)
		close(fd);
	while (folder && !found && (entry = readdir(folder))) {
		char target[PATH_MAX];
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		found = strstr(target, container_id) != NULL;
	}
	if (folder)
		closedir(folder);
	return found;
}

/* Finds the container: the only one, or the one whose log has the id. */
static void container_find(
    struct pod_names *names, int logs_fd, const char *folder_name, const char *container_id)
{
	int fd = openat(logs_fd, folder_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool sure = false;
	size_t count = 0;

	if (fd >= 0 && !folder)
		close(fd);
	while (folder && !sure && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		sure = *container_id && has_link_to(dirfd(folder), entry->d_name, container_id);
		if (!count++ || sure)
			snprintf(names->container, sizeof(names->container), "%.255s", entry->d_name);
	}
	if (count > 1 && !sure)
		names->container[0] = '\0';
	if (folder)
		closedir(folder);
}

bool pod_names_find(struct pod_names *names, const char *logs, const char *uid, const char *container_id)
{
	DIR *folder = opendir(logs);
	const struct dirent *entry;
	bool found = false;

	*names = (struct pod_names){0};
	while (folder && !found && (entry = readdir(folder))) {
		found = pod_names_parse(names, entry->d_name, uid);
		if (found)
			container_find(names, dirfd(folder), entry->d_name, container_id);
	}
	if (folder)
		closedir(folder);
	return found;
}
