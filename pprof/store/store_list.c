/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_list.h"

#include "pprof/codec/file.h"
#include "pprof/table/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096 };

void store_list_fini(struct store_list *list)
{
	free(list->files);
	free(list->services);
	free(list->days);
	free(list->temporaries);
	intern_fini(&list->kinds);
	*list = (struct store_list){0};
}

/* ---- folders */

/* A stream over a folder that is no link; NULL: errno. */
static DIR *folder_open(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !folder)
		close(fd);
	return folder;
}

uint64_t store_list_folder_bytes(uint64_t size_bytes)
{
	return (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

static void count_folder(struct store_list *list, int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0)
		list->folder_bytes += store_list_folder_bytes((uint64_t)st.st_size);
}

static int add_temporary(struct store_list *list, const struct store_day *day, const char *name)
{
	struct store_temporary *made;

	if (array_reserve(
	        &list->temporaries, &list->temporary_room, list->temporary_count + 1, sizeof(*made)))
		return -ENOMEM;
	made = &list->temporaries[list->temporary_count++];
	made->day = *day;
	snprintf(made->name, sizeof(made->name), "%.39s", name);
	return 0;
}

/* Is it a regular file? *bytes: its size if that is asked for. */
static bool look_at(int folder_fd, const struct dirent *entry, bool with_sizes, uint64_t *bytes)
{
	struct stat st;

	*bytes = 0;
	if (!with_sizes && entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_REG;
	if (fstatat(folder_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return false;
	*bytes = (uint64_t)st.st_size;
	return true;
}

static int add_file(struct store_list *list, uint32_t service, const struct store_name *name, uint64_t bytes)
{
	struct store_file file = {.time_s = name->time_s,
	    .bytes = bytes,
	    .service = service,
	    .pid = name->pid,
	    .class = (uint8_t)name->class};

	if (list->file_count == STORE_LIST_FILES_MOST)
		return 0;
	if (array_reserve(&list->files, &list->file_room, list->file_count + 1, sizeof(file)) ||
	    intern_add(&list->kinds, name->kind, strlen(name->kind), &file.kind))
		return -ENOMEM;
	list->files[list->file_count++] = file;
	return 0;
}

/* HHMMSS.PID.timeline.jsonl: earlier versions wrote it beside the profiles; nothing reads it now. */
static bool is_timeline(const char *name)
{
	return strlen(name) < sizeof(((struct store_temporary *)0)->name) &&
	    strspn(name, "0123456789") == 6 && name[6] == '.' &&
	    strcmp(name + 7 + strspn(name + 7, "0123456789"), ".timeline.jsonl") == 0;
}

static int read_day(struct store_list *list, int service_fd, const char *day_name,
    const struct store_day *day, bool with_sizes)
{
	DIR *folder = folder_open(service_fd, day_name);
	const struct dirent *entry;
	int err = 0;

	if (!folder)
		return errno == ENOMEM ? -ENOMEM : 0;
	if (with_sizes)
		count_folder(list, dirfd(folder));
	if (with_sizes && array_reserve(&list->days, &list->day_room, list->day_count + 1, sizeof(*day)))
		err = -ENOMEM;
	else if (with_sizes)
		list->days[list->day_count++] = *day;
	while (!err && (entry = readdir(folder))) {
		struct store_name name;
		uint64_t bytes;

		if (with_sizes && (file_is_temporary(entry->d_name) || is_timeline(entry->d_name)))
			err = add_temporary(list, day, entry->d_name);
		else if (store_name_parse(day_name, entry->d_name, &name) &&
		    look_at(dirfd(folder), entry, with_sizes, &bytes))
			err = add_file(list, day->service, &name, bytes);
	}
	closedir(folder);
	return err;
}

static int read_service(struct store_list *list, int store_fd, uint32_t service, bool with_sizes)
{
	DIR *folder = folder_open(store_fd, list->services[service]);
	const struct dirent *entry;
	int err = 0;

	if (!folder)
		return errno == ENOMEM ? -ENOMEM : 0;
	if (with_sizes)
		count_folder(list, dirfd(folder));
	while (!err && (entry = readdir(folder))) {
		struct store_day day = {.service = service};

		if (store_name_day(entry->d_name, &day.time_s))
			err = read_day(list, dirfd(folder), entry->d_name, &day, with_sizes);
	}
	closedir(folder);
	return err;
}

/* ---- the store */

static int add_service(struct store_list *list, const char *name)
{
	if (!service_name_is_good(name))
		return 0;
	if (array_reserve(
	        &list->services, &list->service_room, list->service_count + 1, sizeof(*list->services)))
		return -ENOMEM;
	strcpy(list->services[list->service_count++], name);
	return 0;
}

static int compare_services(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int compare_files(const void *a, const void *b)
{
	const struct store_file *x = a, *y = b;

	if (x->service != y->service)
		return x->service < y->service ? -1 : 1;
	if (x->time_s != y->time_s)
		return x->time_s < y->time_s ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static int compare_days(const void *a, const void *b)
{
	const struct store_day *x = a, *y = b;

	if (x->service != y->service)
		return x->service < y->service ? -1 : 1;
	return x->time_s < y->time_s ? -1 : x->time_s > y->time_s;
}

/* Takes the stream. */
static int read_names(struct store_list *list, DIR *folder, const char *service, bool with_sizes)
{
	const struct dirent *entry;
	int err = 0;

	if (with_sizes)
		count_folder(list, dirfd(folder));
	if (service)
		err = add_service(list, service);
	while (!service && !err && (entry = readdir(folder)))
		if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
			err = add_service(list, entry->d_name);
	if (list->service_count)
		qsort(list->services, list->service_count, sizeof(*list->services), compare_services);
	for (size_t i = 0; i < list->service_count && !err; i++)
		err = read_service(list, dirfd(folder), (uint32_t)i, with_sizes);
	closedir(folder);
	if (err)
		return err;
	if (list->file_count)
		qsort(list->files, list->file_count, sizeof(*list->files), compare_files);
	if (list->day_count)
		qsort(list->days, list->day_count, sizeof(*list->days), compare_days);
	return 0;
}

int store_list_read_at(struct store_list *list, int store_fd, const char *service, bool with_sizes)
{
	int err;
	DIR *folder = folder_open(store_fd, ".");

	*list = (struct store_list){0};
	if (!folder)
		return -errno;
	err = read_names(list, folder, service, with_sizes);
	if (err)
		store_list_fini(list);
	return err;
}

int store_list_read(struct store_list *list, const char *store, const char *service, bool with_sizes)
{
	int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	*list = (struct store_list){0};
	if (fd < 0)
		return -errno;
	err = store_list_read_at(list, fd, service, with_sizes);
	close(fd);
	return err;
}

/* ---- asking */

int store_list_path(
    const struct store_list *list, const struct store_file *file, char *path, size_t path_bytes)
{
	struct store_name name = {.time_s = file->time_s, .pid = file->pid};
	char day[STORE_NAME_DAY_BYTES], base[STORE_NAME_FILE_BYTES];

	snprintf(name.kind, sizeof(name.kind), "%s", intern_at(&list->kinds, file->kind));
	if (store_name_format(&name, day, base) != 0 ||
	    (size_t)snprintf(path, path_bytes, "%s/%s/%s", list->services[file->service], day, base) >=
	        path_bytes)
		return -ENAMETOOLONG;
	return 0;
}

size_t store_list_service(const struct store_list *list, const char *service, size_t *first)
{
	const char(*found)[SERVICE_NAME_BYTES] = list->service_count
	    ? bsearch(service, list->services, list->service_count, sizeof(*list->services), compare_services)
	    : NULL;
	size_t at = 0, count = 0;
	uint32_t number;

	*first = 0;
	if (!found)
		return 0;
	number = (uint32_t)(found - (const char(*)[SERVICE_NAME_BYTES])list->services);
	while (at < list->file_count && list->files[at].service < number)
		at++;
	while (at + count < list->file_count && list->files[at + count].service == number)
		count++;
	*first = at;
	return count;
}
