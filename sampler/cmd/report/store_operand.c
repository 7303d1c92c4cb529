/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/store_operand.h"

#include "pprof/store/config_file.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/nearest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void describe_time(int64_t time_s, char text[64])
{
	time_t seconds = (time_t)time_s;
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(text, 64, "%Y-%m-%d %H:%M:%S %Z", &tm))
		snprintf(text, 64, "%lld", (long long)time_s);
}

static int say_nothing_then(
    const struct store_list *list, const char *store, const char *service, int64_t time_s, size_t first)
{
	char then[64], begin[64];

	describe_time(time_s, then);
	describe_time(list->files[first].time_s, begin);
	if (list->files[first].time_s > time_s)
		log_line("%s has nothing of %s at or before %s: its first profile is of %s", store, service,
		    then, begin);
	else
		log_line("%s has no snapshot of %s at or before %s", store, service, then);
	return -ENODATA;
}

/* until_ns: see struct store_operand_file. */
static int take_chosen(struct store_operand *found, const struct store_list *list, const char *store,
    const size_t *chosen, size_t count, int64_t until_ns)
{
	found->files = calloc(count, sizeof(*found->files));
	if (!found->files)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		char below[PATH_MAX], *path = NULL;

		if (store_list_path(list, &list->files[chosen[i]], below, sizeof(below)) != 0)
			continue;
		if (asprintf(&path, "%s/%s", store, below) < 0)
			return -ENOMEM;
		found->files[found->count++] = (struct store_operand_file){
		    path, list->files[chosen[i]].class == STORE_PEAK ? until_ns : 0};
	}
	return 0;
}

/* The last nanosecond of that second. */
static int64_t end_of(int64_t time_s)
{
	return time_s < INT64_MAX / CLOCK_NS_PER_S - 1 ? (time_s + 1) * CLOCK_NS_PER_S - 1 : INT64_MAX;
}

/* In one store. Returns 1; 0 if it has no such service; or -errno. */
static int find_in(struct store_operand *found, const char *store, const char *service, int64_t time_s,
    bool has_time, enum store_moment_wanted wanted)
{
	struct store_list list;
	size_t first, count, *chosen, chosen_count = 0;
	int err = store_list_read(&list, store, service, false);

	if (err)
		return err == -ENOMEM ? err : 0;
	count = store_list_service(&list, service, &first);
	chosen = calloc(count + 1, sizeof(*chosen));
	if (!count || !chosen) {
		err = chosen ? 0 : -ENOMEM;
	} else {
		err = store_moment_choose(&list, first, count, time_s, wanted, chosen, &chosen_count);
		if (!err && !chosen_count)
			err = say_nothing_then(&list, store, service, time_s, first);
		if (!err)
			err = take_chosen(
			    found, &list, store, chosen, chosen_count, has_time ? end_of(time_s) : 0);
		err = err ? err : 1;
	}
	free(chosen);
	store_list_fini(&list);
	return err;
}

/* Says which names of a store that is there are near. */
static void say_unknown(const char *store, const char *service)
{
	struct store_list list;
	struct nearest nearest;
	char names[NEAREST_KEPT * NEAREST_WORD_BYTES];

	if (store_list_read(&list, store, NULL, false) != 0)
		return;
	nearest_init(&nearest, service);
	for (size_t i = 0; i < list.service_count; i++)
		nearest_offer(&nearest, list.services[i]);
	nearest_list(&nearest, names, sizeof(names));
	if (list.service_count)
		log_line("%s has no service '%s'%s%s%s (heaptap ls %s lists them)", store, service,
		    *names ? "; did you mean " : "", names, *names ? "?" : "", store);
	store_list_fini(&list);
}

/* "redis@yesterday": is what is before the '@' a service, the rest is meant as a time. */
static int check_time(
    const char *word, char paths[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES], size_t count)
{
	const char *at = strrchr(word, '@');
	char service[SERVICE_NAME_BYTES];
	struct store_list list;
	bool known = false;

	if (!at || at == word || (size_t)(at - word) >= sizeof(service))
		return 0;
	snprintf(service, sizeof(service), "%.*s", (int)(at - word), word);
	for (size_t i = 0; i < count && !known && service_name_is_good(service); i++) {
		if (store_list_read(&list, paths[i], service, false) != 0)
			continue;
		known = list.file_count > 0;
		store_list_fini(&list);
	}
	if (!known)
		return 0;
	log_line("'%s' is no time: " STORE_MOMENT_TIMES, at + 1);
	return -EINVAL;
}

int store_operand_find(
    struct store_operand *found, const char *word, const struct store_operand_choice *choice, bool is_told)
{
	char paths[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES], service[SERVICE_NAME_BYTES];
	size_t count = config_file_stores(choice->store, paths);
	int64_t time_s, now_s = clock_unix_ns() / CLOCK_NS_PER_S;
	bool has_time, is_service = store_moment_split(word, now_s, service, &time_s, &has_time);
	int ret = 0;

	*found = (struct store_operand){0};
	for (size_t i = 0; is_service && i < count && !ret; i++)
		ret = find_in(found, paths[i], service, time_s, has_time, choice->wanted);
	if (!ret)
		ret = check_time(word, paths, count);
	for (size_t i = 0; is_service && is_told && i < count && !ret; i++)
		say_unknown(paths[i], service);
	return ret;
}

void store_operand_fini(struct store_operand *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->files[i].path);
	free(found->files);
	*found = (struct store_operand){0};
}
