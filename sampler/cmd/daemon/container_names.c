/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/container_names.h"

#include "sampler/linux/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HEX_ID = 64, TASK_HEX = 32, UUID = 36, GARDEN = 28, PARTS_LOOKED_AT = 2 };

static bool is_hex(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

static size_t hex_length(const char *text, size_t length)
{
	size_t count = 0;

	while (count < length && is_hex(text[count]))
		count++;
	return count;
}

/* Are these groups of hexadecimal digits, with '-' or `other` between them? */
static bool is_grouped(const char *text, const size_t *groups, size_t count, char other)
{
	for (size_t i = 0; i < count; i++) {
		if (hex_length(text, groups[i]) != groups[i])
			return false;
		text += groups[i];
		if (i + 1 < count && *text != '-' && *text != other)
			return false;
		text++;
	}
	return true;
}

/* ---- containers */

/* The length of the id at the end of a part of the path, or 0. An id is 64 digits (Docker, containerd,
 * CRI-O, Podman), 32 and a number (ECS), a UUID, or 8-4-4-4-4 (Garden). */
static size_t id_at_end(const char *part, size_t length)
{
	static const size_t uuid[] = {8, 4, 4, 4, 12}, garden[] = {8, 4, 4, 4, 4};
	size_t digits = 0;

	if (length >= HEX_ID && hex_length(part + length - HEX_ID, HEX_ID) == HEX_ID)
		return HEX_ID;
	if (length >= UUID && is_grouped(part + length - UUID, uuid, 5, '-'))
		return UUID;
	if (length >= GARDEN && is_grouped(part + length - GARDEN, garden, 5, '-'))
		return GARDEN;
	while (digits < length && part[length - 1 - digits] >= '0' && part[length - 1 - digits] <= '9')
		digits++;
	if (digits && length > digits + TASK_HEX && part[length - digits - 1] == '-' &&
	    hex_length(part + length - digits - 1 - TASK_HEX, TASK_HEX) == TASK_HEX)
		return TASK_HEX + 1 + digits;
	return 0;
}

static bool ends_with(const char *text, size_t length, const char *ending)
{
	size_t bytes = strlen(ending);

	return length >= bytes && memcmp(text + length - bytes, ending, bytes) == 0;
}

/* Does a part of the path name a container? "docker-ID.scope", "cri-containerd:ID", "ID",
 * "lxc.payload.NAME". */
static bool container_of(const char *part, size_t length, char id[CONTAINER_NAMES_CONTAINER_BYTES])
{
	static const char lxc[] = "lxc.payload.";
	size_t bytes;

	if (ends_with(part, length, ".scope"))
		length -= strlen(".scope");
	bytes = id_at_end(part, length);
	if (!bytes && length > strlen(lxc) && strncmp(part, lxc, strlen(lxc)) == 0)
		bytes = length - strlen(lxc);
	else if (bytes && bytes < length && !strchr("-:", part[length - bytes - 1]))
		return false; /* "pod" itself, and the cgroup of the pod */
	if (!bytes || bytes >= CONTAINER_NAMES_CONTAINER_BYTES)
		return false;
	memcpy(id, part + length - bytes, bytes);
	id[bytes] = '\0';
	return true;
}

/* ---- pods */

static void pod_find(const char *path, char pod[CONTAINER_NAMES_POD_BYTES])
{
	static const size_t uuid[] = {8, 4, 4, 4, 12};

	for (const char *at = strstr(path, "pod"); at; at = strstr(at + 1, "pod")) {
		const char *id = at + strlen("pod");
		size_t length = strcspn(id, "/.");

		if (length == UUID && is_grouped(id, uuid, 5, '_')) {
			for (size_t i = 0; i < UUID; i++)
				pod[i] = id[i] == '_' ? '-' : id[i];
			pod[UUID] = '\0';
		} else if (length == TASK_HEX && hex_length(id, length) == length) { /* a static pod */
			memcpy(pod, id, length);
			pod[length] = '\0';
		}
	}
}

/* ---- the path */

/* Is it the unit of a container runtime? The containers below it are no parts of the unit. */
static bool is_runtime(const char *unit)
{
	static const char *const runtimes[] = {"containerd.service", "docker.service", "crio.service",
	    "cri-o.service", "kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service",
	    "rke2-agent.service", "podman.service", "ecs.service", "garden.service"};

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strcmp(unit, runtimes[i]) == 0)
			return true;
	return false;
}

static bool is_unit(const char *part, size_t length)
{
	return (ends_with(part, length, ".service") && length > strlen(".service")) ||
	    (ends_with(part, length, ".scope") && length > strlen(".scope"));
}

void container_names_of_path(struct container_names *names, const char *path)
{
	size_t from_end = 0, length = strlen(path);

	*names = (struct container_names){0};
	snprintf(names->path, sizeof(names->path), "%s", path);
	pod_find(path, names->pod_uid);
	while (length) {
		size_t begin = length;
		char id[CONTAINER_NAMES_CONTAINER_BYTES];
		bool is_container;

		while (begin && path[begin - 1] != '/')
			begin--;
		is_container = container_of(path + begin, length - begin, id);
		if (is_container && from_end < PARTS_LOOKED_AT && !*names->container_id)
			strcpy(names->container_id, id);
		if (!is_container && !*names->unit && is_unit(path + begin, length - begin) &&
		    length - begin < sizeof(names->unit)) {
			memcpy(names->unit, path + begin, length - begin);
			names->unit[length - begin] = '\0';
		}
		from_end += length > begin;
		length = begin ? begin - 1 : 0;
	}
	if (*names->container_id && is_runtime(names->unit))
		*names->unit = '\0';
}

/* How good a line is; 0: of no use. */
static int rank(const struct proc_cgroup *line)
{
	if (line->path_bytes <= 1)
		return 1;
	if (!line->controllers_bytes)
		return 5;
	if (proc_cgroup_has(line, "memory"))
		return 4;
	return proc_cgroup_has(line, "name=systemd") ? 3 : 2;
}

void container_names_parse(struct container_names *names, const char *text)
{
	char path[CONTAINER_NAMES_PATH_BYTES] = "";
	struct proc_cgroup line;
	int best = 0;

	while (proc_cgroup_next(&text, &line)) {
		if (line.path_bytes >= sizeof(path) || rank(&line) <= best)
			continue;
		best = rank(&line);
		memcpy(path, line.path, line.path_bytes);
		path[line.path_bytes] = '\0';
	}
	container_names_of_path(names, path);
}

/* ---- the pod's names */

bool container_names_parse_pod(struct container_names_pod *names, const char *folder, const char *uid)
{
	/* The names of Kubernetes contain no '_'. */
	const char *pod = strchr(folder, '_'), *end = strrchr(folder, '_');

	*names = (struct container_names_pod){0};
	if (!*uid || !pod || pod == folder || end <= pod + 1 || strcmp(end + 1, uid) != 0 ||
	    pod - folder >= CONTAINER_NAMES_POD_NAME_BYTES || end - pod > CONTAINER_NAMES_POD_NAME_BYTES)
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
    struct container_names_pod *names, int logs_fd, const char *folder_name, const char *container_id)
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

bool container_names_find_pod(
    struct container_names_pod *names, const char *logs, const char *uid, const char *container_id)
{
	DIR *folder = opendir(logs);
	const struct dirent *entry;
	bool found = false;

	*names = (struct container_names_pod){0};
	while (folder && !found && (entry = readdir(folder))) {
		found = container_names_parse_pod(names, entry->d_name, uid);
		if (found)
			container_find(names, dirfd(folder), entry->d_name, container_id);
	}
	if (folder)
		closedir(folder);
	return found;
}
