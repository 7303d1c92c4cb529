/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/spool_files.h"

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

#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/table/array.h"

/* ---- names */

bool spool_name_is_target(const char *name)
{
	size_t length = strlen(name);

	return length && length < SPOOL_NAME_TARGET_BYTES && *name != '.' &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

void spool_name_print(const struct spool_entry *entry, char name[SPOOL_NAME_BYTES])
{
	snprintf(name, SPOOL_NAME_BYTES, "%020" PRIu64 "-%020" PRId64 "-%016" PRIx64 "-%c.pb.gz",
	    entry->number, entry->time_ns, entry->process, entry->last ? 'e' : 's');
}

bool spool_name_parse(const char *name, struct spool_entry *entry)
{
	struct spool_entry found = {.bytes = entry->bytes};
	char letter, again[SPOOL_NAME_BYTES];

	if (sscanf(name, "%20" SCNu64 "-%20" SCNd64 "-%16" SCNx64 "-%c.pb.gz", &found.number, &found.time_ns,
	        &found.process, &letter) != 4)
		return false;
	found.last = letter == 'e';
	/* The name that it would have, and no other. */
	spool_name_print(&found, again);
	/* The next entry gets a number after this one. */
	if (strcmp(again, name) != 0 || !found.number || found.number > INT64_MAX || found.time_ns < 0)
		return false;
	*entry = found;
	return true;
}

/* ---- counters */

size_t spool_counters_print(const struct spool_counters *counters, char text[SPOOL_COUNTERS_BYTES])
{
	return (size_t)snprintf(text, SPOOL_COUNTERS_BYTES,
	    "sent %" PRIu64 "\nretried %" PRIu64 "\nrejected %" PRIu64 "\ndropped %" PRIu64
	    "\ngiven_up %" PRIu64 "\npassed_over %" PRIu64 "\nresent %" PRIu64 "\ndenied %" PRIu64
	    "\ndenied_since_s %" PRIu64 "\nsending %" PRIu64 "\n",
	    counters->sent, counters->retried, counters->rejected, counters->dropped, counters->given_up,
	    counters->passed_over, counters->resent, counters->denied, counters->denied_since_s,
	    counters->sending);
}

void spool_counters_parse(const uint8_t *bytes, size_t length, struct spool_counters *counters)
{
	struct {
		const char *name;
		uint64_t *value;
	} lines[] = {{"sent ", &counters->sent}, {"retried ", &counters->retried},
	    {"rejected ", &counters->rejected}, {"dropped ", &counters->dropped},
	    {"given_up ", &counters->given_up}, {"passed_over ", &counters->passed_over},
	    {"resent ", &counters->resent}, {"denied ", &counters->denied},
	    {"denied_since_s ", &counters->denied_since_s}, {"sending ", &counters->sending}};
	char text[SPOOL_COUNTERS_BYTES];

	*counters = (struct spool_counters){0};
	if (length >= sizeof(text))
		return;
	memcpy(text, bytes, length);
	text[length] = '\0';
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			if (strncmp(line, lines[i].name, strlen(lines[i].name)) == 0)
				*lines[i].value = strtoull(line + strlen(lines[i].name), NULL, 10);
}

/* ---- the list */

/* Of heaptap-push.service. */
#define SPOOL_LIST_SERVICE "/var/lib/heaptap/push"

enum { LINE_BYTES = 512 };

void spool_list_fini(struct spool_list *list)
{
	free(list->rows);
	*list = (struct spool_list){0};
}

int spool_list_folder(char *path, size_t path_bytes)
{
	const char *path_of_root = SPOOL_LIST_SERVICE;
	struct stat st;
	int err = folder_of_user(
	    "XDG_STATE_HOME", geteuid() ? ".local/state" : NULL, "/heaptap/push", path, path_bytes);

	if (err != -ENOENT || geteuid())
		return err;
	/* heaptap-push.service runs as a user of its own, who may do there what he likes. */
	if (lstat(SPOOL_LIST_SERVICE, &st) == 0 && st.st_uid != 0)
		path_of_root = SPOOL_LIST_SERVICE "-root";
	return (size_t)snprintf(path, path_bytes, "%s", path_of_root) < path_bytes ? 0 : -ENAMETOOLONG;
}

static struct spool_list_row *add_row(struct spool_list *list)
{
	if (array_reserve(&list->rows, &list->room, list->count + 1, sizeof(*list->rows)))
		return NULL;
	list->rows[list->count] = (struct spool_list_row){0};
	return &list->rows[list->count++];
}

static void read_counters(int folder_fd, struct spool_counters *counters)
{
	uint8_t *bytes;
	size_t length;

	if (file_read_at(folder_fd, "counters", SPOOL_COUNTERS_BYTES, &bytes, &length))
		return;
	spool_counters_parse(bytes, length, counters);
	free(bytes);
}

/* Adds the spool in a folder, unless that cannot be read. */
static int read_spool(struct spool_list *list, int folder_fd, const char *target)
{
	DIR *spool = folder_list(folder_fd, target);
	struct spool_list_row *row;
	const struct dirent *found;

	if (!spool)
		return errno == ENOMEM ? -ENOMEM : 0;
	row = add_row(list);
	if (!row) {
		closedir(spool);
		return -ENOMEM;
	}
	strcpy(row->target, target);
	read_counters(dirfd(spool), &row->counters);
	while ((found = readdir(spool))) {
		struct spool_entry entry = {0};
		struct stat st;

		if (!spool_name_parse(found->d_name, &entry) ||
		    fstatat(dirfd(spool), found->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		row->count++;
		row->bytes += (uint64_t)st.st_size;
		if (!row->oldest_ns || entry.time_ns < row->oldest_ns)
			row->oldest_ns = entry.time_ns;
	}
	closedir(spool);
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	return strcmp(((const struct spool_list_row *)a)->target, ((const struct spool_list_row *)b)->target);
}

int spool_list_add(struct spool_list *list, const char *path)
{
	struct folder folder;
	const struct dirent *found;
	int err = 0;
	DIR *spools;

	if (folder_open(&folder, NULL, path, 0, 0))
		return 0;
	spools = folder_list(folder.fd, ".");
	while (spools && !err && list->count < SPOOL_LIST_MAX && (found = readdir(spools)))
		if (spool_name_is_target(found->d_name))
			err = read_spool(list, folder.fd, found->d_name);
	if (spools)
		closedir(spools);
	folder_close(&folder);
	if (list->count)
		qsort(list->rows, list->count, sizeof(*list->rows), compare_rows);
	return err;
}

int spool_list_read(struct spool_list *list)
{
	char path[PATH_MAX];
	int err = spool_list_folder(path, sizeof(path));

	*list = (struct spool_list){0};
	err = err ? 0 : spool_list_add(list, path);
	if (!err && strcmp(path, SPOOL_LIST_SERVICE "-root") == 0)
		err = spool_list_add(list, SPOOL_LIST_SERVICE);
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
