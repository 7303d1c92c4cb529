/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/service/spool_list.h"

#include "pprof/codec/file.h"
#include "pprof/table/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };

void spool_list_fini(struct spool_list *list)
{
	free(list->rows);
	*list = (struct spool_list){0};
}

int spool_list_folder(char *path, size_t path_bytes)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int length;

	if (state && *state == '/')
		length = snprintf(path, path_bytes, "%s/heaptap/push", state);
	else if (geteuid() == 0)
		length = snprintf(path, path_bytes, "/var/lib/heaptap/push");
	else if (home && *home == '/')
		length = snprintf(path, path_bytes, "%s/.local/state/heaptap/push", home);
	else
		return -ENOENT;
	return (size_t)length < path_bytes ? 0 : -ENAMETOOLONG;
}

static struct spool_list_row *add_row(struct spool_list *list)
{
	if (array_reserve(&list->rows, &list->room, list->count + 1, sizeof(*list->rows)))
		return NULL;
	list->rows[list->count] = (struct spool_list_row){0};
	return &list->rows[list->count++];
}

static void read_counters(const char *folder, struct spool_counters *counters)
{
	char path[PATH_MAX];
	uint8_t *bytes;
	size_t length;

	if ((size_t)snprintf(path, sizeof(path), "%s/counters", folder) >= sizeof(path) ||
	    file_read(path, SPOOL_COUNTERS_BYTES, &bytes, &length))
		return;
	spool_counters_parse(bytes, length, counters);
	free(bytes);
}

/* Adds the spool in a folder, unless that cannot be read. */
static int read_spool(struct spool_list *list, const char *target, const char *path)
{
	DIR *folder = opendir(path);
	struct spool_list_row *row;
	const struct dirent *found;

	if (!folder)
		return errno == ENOMEM ? -ENOMEM : 0;
	row = add_row(list);
	if (!row) {
		closedir(folder);
		return -ENOMEM;
	}
	strcpy(row->target, target);
	read_counters(path, &row->counters);
	while ((found = readdir(folder))) {
		struct spool_entry entry = {0};
		struct stat st;

		if (!spool_name_parse(found->d_name, &entry) ||
		    fstatat(dirfd(folder), found->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		row->count++;
		row->bytes += (uint64_t)st.st_size;
		if (!row->oldest_ns || entry.time_ns < row->oldest_ns)
			row->oldest_ns = entry.time_ns;
	}
	closedir(folder);
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	return strcmp(((const struct spool_list_row *)a)->target, ((const struct spool_list_row *)b)->target);
}

int spool_list_read(struct spool_list *list, const char *folder)
{
	DIR *spools = opendir(folder);
	const struct dirent *found;
	char path[PATH_MAX];
	int err = 0;

	*list = (struct spool_list){0};
	while (spools && !err && list->count < SPOOL_LIST_MAX && (found = readdir(spools)))
		if (spool_name_is_target(found->d_name) &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, found->d_name) < sizeof(path))
			err = read_spool(list, found->d_name, path);
	if (spools)
		closedir(spools);
	if (list->count)
		qsort(list->rows, list->count, sizeof(*list->rows), compare_rows);
	return err;
}

double spool_list_age(const struct spool_list_row *row, int64_t now_ns)
{
	return row->oldest_ns && now_ns > row->oldest_ns ? (double)(now_ns - row->oldest_ns) / 1e9 : 0;
}

/* ---- text */

char *spool_list_print(const struct spool_list *list, size_t *bytes)
{
	char *text = malloc(list->count * LINE_BYTES + 1);

	*bytes = 0;
	for (size_t i = 0; i < list->count && text; i++) {
		const struct spool_list_row *row = &list->rows[i];
		const struct spool_counters *c = &row->counters;

		*bytes += (size_t)snprintf(text + *bytes, LINE_BYTES,
		    "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		    " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
		    row->target, c->sent, c->retried, c->rejected, c->dropped, c->given_up, c->passed_over,
		    c->resent, c->denied, row->bytes, row->count, row->oldest_ns);
	}
	return text;
}

static int parse_line(struct spool_list *list, const char *line)
{
	struct spool_list_row row = {0}, *made;
	struct spool_counters *c = &row.counters;
	int end = 0;

	if (sscanf(line,
	        "%127s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
	        " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 "%n",
	        row.target, &c->sent, &c->retried, &c->rejected, &c->dropped, &c->given_up, &c->passed_over,
	        &c->resent, &c->denied, &row.bytes, &row.count, &row.oldest_ns, &end) != 12 ||
	    line[end] || !spool_name_is_target(row.target) || list->count == SPOOL_LIST_MAX)
		return -EPROTO;
	made = add_row(list);
	if (!made)
		return -ENOMEM;
	*made = row;
	return 0;
}

int spool_list_parse(struct spool_list *list, const char *text, size_t bytes)
{
	int err = 0;

	*list = (struct spool_list){0};
	while (bytes && !err) {
		const char *end = memchr(text, '\n', bytes);
		size_t length = end ? (size_t)(end - text) : bytes;
		char line[LINE_BYTES];

		if (!end || length >= sizeof(line))
			return -EPROTO;
		memcpy(line, text, length);
		line[length] = '\0';
		err = parse_line(list, line);
		text += length + 1;
		bytes -= length + 1;
	}
	return err;
}
