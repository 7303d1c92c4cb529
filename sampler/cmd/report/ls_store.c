/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/ls_store.h"

#include "pprof/store/config_file.h"
#include "pprof/store/store_list.h"
#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/json.h"
#include "pprof/text/log_line.h"
#include "pprof/text/utf8.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/report/operands.h"
#include "sampler/linux/screen.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS_MOST = 40 };

struct row {
	const char *name;
	size_t processes, profiles;
	uint64_t bytes;
	int64_t first_s, last_s;
};

/* ---- which store */

static bool has_profiles(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	bool found = false;

	while (folder && !found && (entry = readdir(folder)))
		found = operands_is_profile_name(entry->d_name);
	if (folder)
		closedir(folder);
	return found;
}

static bool is_store(const char *path)
{
	struct store_list list;
	bool has;

	if (store_list_read(&list, path, NULL, false) != 0)
		return false;
	has = list.file_count > 0;
	store_list_fini(&list);
	return has;
}

bool ls_store_wanted(const struct options *options, char store[DAEMON_SECTION_PATH_BYTES])
{
	const char *only = options->operand_count == 1 ? options->operands[0] : NULL;
	char paths[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES];
	size_t count;

	if (only && !has_profiles(only) && is_store(only))
		return snprintf(store, DAEMON_SECTION_PATH_BYTES, "%s", only) < DAEMON_SECTION_PATH_BYTES;
	if (options->operand_count || (!options->read.store && has_profiles(".")))
		return false;
	count = config_file_stores(options->read.store, paths);
	for (size_t i = 0; i < count; i++) {
		if (!options->read.store && !is_store(paths[i]))
			continue;
		memcpy(store, paths[i], sizeof(paths[i]));
		return true;
	}
	return false;
}

/* ---- what is in it */

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

/* Counts different pids: names tell no more. */
static size_t count_processes(const struct store_list *list, size_t first, size_t count)
{
	pid_t *pids = calloc(count + 1, sizeof(*pids));
	size_t different = 0;

	if (!pids)
		return 0;
	for (size_t i = 0; i < count; i++)
		pids[i] = list->files[first + i].pid;
	qsort(pids, count, sizeof(*pids), compare_pids);
	for (size_t i = 0; i < count; i++)
		different += !i || pids[i] != pids[i - 1];
	free(pids);
	return different;
}

static void row_make(struct row *row, const struct store_list *list, size_t service)
{
	size_t first, count;

	*row = (struct row){.name = list->services[service]};
	count = store_list_service(list, row->name, &first);
	if (!count)
		return;
	row->processes = count_processes(list, first, count);
	row->first_s = list->files[first].time_s;
	row->last_s = list->files[first + count - 1].time_s;
	row->profiles = count;
	for (size_t i = first; i < first + count; i++)
		row->bytes += list->files[i].bytes;
}

static void print_time(FILE *out, int64_t time_s)
{
	char text[32];

	fprintf(out, "  %-19s", clock_text(time_s * CLOCK_NS_PER_S, "%Y-%m-%d %H:%M:%S", text, sizeof(text)));
}

static void print_table(const struct screen *screen, const struct store_list *list, const char *store)
{
	int columns = (int)sizeof("service") - 1, used;
	char text[AMOUNT_BYTES];
	struct row row;

	for (size_t i = 0; i < list->service_count; i++)
		if ((int)strlen(list->services[i]) > columns)
			columns = (int)strlen(list->services[i]);
	columns = columns < NAME_COLUMNS_MOST ? columns : NAME_COLUMNS_MOST;
	fprintf(
	    screen->out, "%sStore%s ", screen_style(screen, SCREEN_HEAD), screen_style(screen, SCREEN_PLAIN));
	screen_text(screen, store, 0);
	fprintf(screen->out, "\n%-*s  pids  profiles       size  %-19s  %s\n", columns, "service", "first",
	    "last");
	for (size_t i = 0; i < list->service_count; i++) {
		row_make(&row, list, i);
		if (!row.profiles)
			continue;
		used = screen_text(screen, row.name, columns);
		fprintf(screen->out, "%*s %5zu %9zu %10s", columns - used, "", row.processes, row.profiles,
		    amount_bytes((double)row.bytes, text));
		print_time(screen->out, row.first_s);
		print_time(screen->out, row.last_s);
		putc('\n', screen->out);
	}
}

static void write_json(FILE *out, const struct store_list *list, const char *store)
{
	struct json json = {.out = out};
	size_t length = strlen(store);
	char *path = calloc(UTF8_SANITIZED_MAX(length) + 1, 1);
	struct row row;

	if (path)
		utf8_sanitize(path, store, length);
	json_object(&json, NULL);
	json_text(&json, "heaptap", HEAPTAP_VERSION);
	json_text(&json, "store", path ? path : "");
	json_array(&json, "services");
	for (size_t i = 0; i < list->service_count; i++) {
		row_make(&row, list, i);
		json_object(&json, NULL);
		json_text(&json, "service", row.name);
		json_integer(&json, "processes", (int64_t)row.processes);
		json_integer(&json, "profiles", (int64_t)row.profiles);
		json_integer(&json, "bytes", (int64_t)row.bytes);
		json_integer(&json, "first_ns", row.first_s * 1000000000);
		json_integer(&json, "last_ns", row.last_s * 1000000000);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	free(path);
}

int ls_store_run(const struct options *options, const char *store)
{
	const struct read_options *read = &options->read;
	struct store_list list;
	struct screen screen;
	int err = store_list_read(&list, store, NULL, true), status = 0;

	if (err) {
		log_line("cannot read %s: %s", store, strerror(-err));
		return 1;
	}
	if (!list.file_count && !read->json) {
		log_line("no profile in %s", store);
		status = 1;
	} else if (screen_open(&screen, options->output, !read->no_pager, read->memory_max_bytes) == 0) {
		if (read->json)
			write_json(screen.out, &list, store);
		else
			print_table(&screen, &list, store);
		status = screen_close(&screen, 0);
	} else {
		status = 1;
	}
	store_list_fini(&list);
	return status;
}
