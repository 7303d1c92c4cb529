/* SPDX-License-Identifier: Apache-2.0 */
/* A look at the whole store: lists it, plans what must go, and removes that. */
#include "pprof/codec/file.h"
#include "pprof/store/store_folder.h"
#include "pprof/store/store_list.h"
#include "pprof/store/store_plan.h"
#include "pprof/store/store_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLACK_PART = 16, DAY_S = 24 * 3600 };

/* The folder in which files are removed. Files come folder by folder. */
struct place {
	int store_fd, service_fd, day_fd;
	uint32_t service;
	int64_t day_s;
};

static void leave(struct place *place)
{
	if (place->day_fd >= 0)
		close(place->day_fd);
	if (place->service_fd >= 0)
		close(place->service_fd);
	place->service_fd = place->day_fd = -1;
}

static void day_name(int64_t time_s, char day[STORE_NAME_DAY_BYTES])
{
	char file[STORE_NAME_FILE_BYTES];
	const struct store_name any = {.time_s = time_s, .pid = 1, .kind = "heap"};

	if (store_name_format(&any, day, file) != 0)
		day[0] = '\0';
}

/* Opens the folder of that day. -1 if it is gone. */
static int enter(struct place *place, const struct store_list *list, uint32_t service, int64_t day_s)
{
	char day[STORE_NAME_DAY_BYTES];

	if (place->day_fd >= 0 && place->service == service && place->day_s == day_s)
		return place->day_fd;
	leave(place);
	place->service = service;
	place->day_s = day_s;
	day_name(day_s, day);
	place->service_fd = store_folder_open(place->store_fd, list->services[service], (gid_t)-1, NULL);
	if (place->service_fd >= 0)
		place->day_fd = store_folder_open(place->service_fd, day, (gid_t)-1, NULL);
	return place->day_fd;
}

/* Removes a regular file. True if it is gone. */
static bool remove_file(int folder_fd, const char *name)
{
	struct stat st;

	if (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	return S_ISREG(st.st_mode) && (unlinkat(folder_fd, name, 0) == 0 || errno == ENOENT);
}

static bool remove_listed(struct place *place, const struct store_list *list, const struct store_file *file)
{
	char path[SERVICE_NAME_BYTES + STORE_NAME_DAY_BYTES + STORE_NAME_FILE_BYTES];
	int fd = enter(place, list, file->service, file->time_s / DAY_S * DAY_S);

	return fd >= 0 && store_list_path(list, file, path, sizeof(path)) == 0 &&
	    remove_file(fd, strrchr(path, '/') + 1);
}

static void count(struct store_sweep *sweep, enum store_plan_fate fate, uint64_t bytes)
{
	sweep->used_bytes -= store_plan_charge(bytes);
	if (fate == STORE_PLAN_THIN) {
		sweep->thinned++;
		sweep->thinned_bytes += bytes;
	} else {
		sweep->evicted++;
		sweep->evicted_bytes += bytes;
	}
}

static void remove_planned(
    struct store_sweep *sweep, struct place *place, const struct store_list *list, const uint8_t *fates)
{
	for (size_t i = 0; i < list->file_count; i++) {
		if (fates[i] == STORE_PLAN_KEEP)
			continue;
		if (remove_listed(place, list, &list->files[i]))
			count(sweep, (enum store_plan_fate)fates[i], list->files[i].bytes);
		else
			sweep->stuck++;
	}
}

/* rmdir(2) decides whether a folder is empty. On some file systems a folder shrinks with what is in it: then
 * its size is less than was counted. */
static void remove_folder(struct store_sweep *sweep, int parent_fd, const char *name)
{
	struct stat st;
	uint64_t bytes;

	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    unlinkat(parent_fd, name, AT_REMOVEDIR) != 0)
		return;
	bytes = store_list_folder_bytes((uint64_t)st.st_size);
	sweep->used_bytes -= bytes < sweep->used_bytes ? bytes : sweep->used_bytes;
}

/* Removes empty folders, also today's: whoever makes a folder has the lock until its file is there. */
static void remove_folders(struct store_sweep *sweep, const struct store_list *list, int store_fd)
{
	for (size_t i = 0; i < list->day_count; i++) {
		const struct store_day *day = &list->days[i];
		char name[STORE_NAME_DAY_BYTES];
		int fd = store_folder_open(store_fd, list->services[day->service], (gid_t)-1, NULL);

		if (fd < 0)
			continue;
		day_name(day->time_s, name);
		remove_folder(sweep, fd, name);
		close(fd);
	}
	for (size_t i = 0; i < list->service_count; i++)
		remove_folder(sweep, store_fd, list->services[i]);
}

static int plan(const struct store_sweep *sweep, const struct store_list *list, uint8_t *fates)
{
	uint64_t taken = list->folder_bytes + sweep->need_bytes, left;
	uint64_t most = sweep->disk_bytes > taken ? sweep->disk_bytes - taken : 0;
	const struct store_plan_limits limits = {
	    .now_s = sweep->now_s,
	    .days = sweep->days,
	    .most_bytes = most,
	    .evict_to_bytes =
	        most > sweep->disk_bytes / SLACK_PART ? most - sweep->disk_bytes / SLACK_PART : 0,
	    .free_bytes = sweep->free_bytes,
	};

	return store_plan_make(list, &limits, fates, &left);
}

int store_sweep_run(struct store_sweep *sweep, int store_fd)
{
	struct place place = {.store_fd = store_fd, .service_fd = -1, .day_fd = -1};
	struct store_list list;
	uint8_t *fates = NULL;
	int err = store_list_read_at(&list, store_fd, NULL, true);

	if (err)
		return err;
	fates = malloc(list.file_count + 1);
	err = fates ? plan(sweep, &list, fates) : -ENOMEM;
	if (!err) {
		sweep->used_bytes = list.folder_bytes;
		for (size_t i = 0; i < list.file_count; i++)
			sweep->used_bytes += store_plan_charge(list.files[i].bytes);
		for (size_t i = 0; i < list.temporary_count; i++) {
			const struct store_temporary *file = &list.temporaries[i];

			/* A timeline.jsonl may still be wanted by its owner until its day expires. */
			if (!file_is_temporary(file->name) &&
			    file->day.time_s + DAY_S > sweep->now_s - (int64_t)sweep->days * DAY_S)
				continue;
			int fd = enter(&place, &list, file->day.service, file->day.time_s);

			if (fd >= 0)
				(void)remove_file(fd, file->name);
		}
		remove_planned(sweep, &place, &list, fates);
		leave(&place);
		remove_folders(sweep, &list, store_fd);
	}
	free(fates);
	store_list_fini(&list);
	return err;
}
