/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/file_list.h"

#include "pprof/codec/folder.h"
#include "pprof/table/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t number_of(const char *path)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
	return hash;
}

static bool is_profile_name(const char *name)
{
	static const char *const endings[] = {".pb.gz", ".pb"};
	size_t length = strlen(name);

	for (size_t i = 0; i < 2; i++) {
		size_t ending = strlen(endings[i]);

		if (length > ending && strcmp(name + length - ending, endings[i]) == 0)
			return true;
	}
	return false;
}

static int64_t mtime_ns(const struct stat *status)
{
	return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

static int add(struct file_list *list, const char *path, const struct stat *status)
{
	char *copy;

	if (list->count >= FILE_LIST_MAX)
		return 0;
	copy = strdup(path);
	if (!copy || array_reserve(&list->items, &list->room, list->count + 1, sizeof(*list->items))) {
		free(copy);
		return -ENOMEM;
	}
	list->items[list->count++] = (struct file_list_item){.number = number_of(path),
	    .bytes = (uint64_t)status->st_size,
	    .mtime_ns = mtime_ns(status),
	    .path = copy,
	    .device = status->st_dev,
	    .inode = status->st_ino};
	return 0;
}

struct look {
	struct file_list *list;
	unsigned int depth; /* of levels of folders that are looked into */
	int64_t since_ns;
};

/* fd: of the folder; it is closed. */
static int look_into(const struct look *look, int fd, const char *path, unsigned int depth)
{
	DIR *folder = fdopendir(fd);
	const struct dirent *entry;
	int err = 0;

	if (!folder)
		close(fd);
	while (folder && !err && (entry = readdir(folder))) {
		char below[PATH_MAX];
		struct stat status;

		if (entry->d_name[0] == '.' ||
		    snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >= (int)sizeof(below) ||
		    fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(status.st_mode) && is_profile_name(entry->d_name)) {
			if (mtime_ns(&status) >= look->since_ns)
				err = add(look->list, below, &status);
		} else if (S_ISDIR(status.st_mode) && depth < look->depth) {
			int next = openat(
			    dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (next >= 0)
				err = look_into(look, next, below, depth + 1);
		}
	}
	if (folder)
		closedir(folder);
	return err;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = ((const struct file_list_item *)left)->number;
	uint64_t b = ((const struct file_list_item *)right)->number;

	return a < b ? -1 : a > b;
}

static int find_given(struct file_list *list, const char *path)
{
	const struct look look = {.list = list, .depth = FILE_LIST_DEPTH, .since_ns = INT64_MIN};
	struct stat status;
	int fd;

	if (stat(path, &status))
		return 0; /* not there now */
	if (S_ISREG(status.st_mode))
		return add(list, path, &status);
	fd = S_ISDIR(status.st_mode) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return fd < 0 ? 0 : look_into(&look, fd, path, 0);
}

static int find_store(struct file_list *list, const struct file_list_store *store)
{
	const struct look look = {.list = list,
	    .depth = store->depth < FILE_LIST_DEPTH ? store->depth : FILE_LIST_DEPTH,
	    .since_ns = store->since_ns};
	const size_t length = strlen(store->path);
	char path[PATH_MAX];
	struct folder folder;
	int fd;

	/* Without a '/' at its end, since a file is known by its path. */
	snprintf(path, sizeof(path), "%.*s",
	    (int)(length > 1 && store->path[length - 1] == '/' ? length - 1 : length), store->path);
	if (folder_open(&folder, NULL, path, 0, 0))
		return 0; /* not there, or not readable for us */
	fd = openat(folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder_close(&folder);
	return fd < 0 ? 0 : look_into(&look, fd, path, 0);
}

/* Files that were given come first. */
static int compare_inodes(const void *left, const void *right)
{
	const struct file_list_item *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	return a->is_given == b->is_given ? compare(a, b) : a->is_given ? -1 : 1;
}

static void drop_twins(struct file_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct file_list_item *last = kept ? &list->items[kept - 1] : NULL;

		if (last && !list->items[i].is_given && last->device == list->items[i].device &&
		    last->inode == list->items[i].inode)
			free((char *)(uintptr_t)list->items[i].path);
		else
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
}

int file_list_find(
    struct file_list *list, char *const *operands, const struct file_list_store *stores, size_t store_count)
{
	int err = 0;

	*list = (struct file_list){0};
	for (; *operands && !err; operands++)
		err = find_given(list, *operands);
	for (size_t i = 0; i < list->count; i++)
		list->items[i].is_given = true;
	for (size_t i = 0; i < store_count && !err; i++)
		err = find_store(list, &stores[i]);
	if (list->count && store_count) {
		qsort(list->items, list->count, sizeof(*list->items), compare_inodes);
		drop_twins(list);
	}
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare);
	return err;
}

char *file_list_print(const struct file_list *list, size_t *bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);

	if (!out)
		return NULL;
	for (size_t i = 0; i < list->count; i++) {
		const struct file_list_item *item = &list->items[i];

		fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRId64 " %s", item->number, item->bytes,
		    item->mtime_ns, item->path);
		putc('\0', out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

int file_list_parse(struct file_list *list, char *text, size_t bytes)
{
	*list = (struct file_list){.text = text};
	if (bytes && text[bytes - 1])
		return -EPROTO;
	for (char *at = text; at < text + bytes; at += strlen(at) + 1) {
		struct file_list_item item = {0};
		int length = 0;

		if (sscanf(at, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %n", &item.number, &item.bytes,
		        &item.mtime_ns, &length) != 3 ||
		    !length)
			return -EPROTO;
		item.path = at + length;
		if (array_reserve(&list->items, &list->room, list->count + 1, sizeof(*list->items)))
			return -ENOMEM;
		list->items[list->count++] = item;
	}
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare);
	return 0;
}

void file_list_fini(struct file_list *list)
{
	for (size_t i = 0; i < list->count && !list->text; i++)
		free((char *)(uintptr_t)list->items[i].path);
	free(list->items);
	free(list->text);
	*list = (struct file_list){0};
}

const struct file_list_item *file_list_by_number(const struct file_list *list, uint64_t number)
{
	size_t at = ARRAY_LOWER_BOUND(list->items, list->count, number, number);

	return at < list->count && list->items[at].number == number ? &list->items[at] : NULL;
}
