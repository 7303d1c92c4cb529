/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/operands.h"

#include "pprof/store/config_file.h"
#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/nearest.h"
#include "pprof/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- files and folders */

static bool ends_with(const char *name, const char *ending)
{
	size_t length = strlen(name), end = strlen(ending);

	return length > end && strcmp(name + length - end, ending) == 0;
}

bool operands_is_profile_name(const char *path)
{
	static const char *const endings[] = {
	    ".pb.gz", ".pb", ".pb.gz" OPERANDS_SYMBOLIZED, ".pb" OPERANDS_SYMBOLIZED};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (ends_with(path, endings[i]))
			return true;
	return false;
}

/* Takes over `path`, also when it fails. */
static int path_add(struct operands *o, char *path, size_t operand, bool from_folder, int64_t until_ns)
{
	if (!path || array_reserve(&o->paths, &o->capacity, o->count + 1, sizeof(*o->paths))) {
		free(path);
		return -ENOMEM;
	}
	o->paths[o->count++] = (struct operand_path){path, operand, from_folder, until_ns};
	return 0;
}

/* A FIFO, a link to a device and a link to nothing are not opened. A file that we may not look at may be a
 * profile: the error comes when it is opened. */
static int entry_add(struct operands *o, const char *folder, int folder_fd, const char *name, size_t operand)
{
	bool here = strcmp(folder, ".") == 0, slash = ends_with(folder, "/");
	struct stat status;
	char *path = NULL;

	if (name[0] == '.' || !operands_is_profile_name(name) ||
	    (fstatat(folder_fd, name, &status, 0) ? errno == ENOENT : !S_ISREG(status.st_mode)))
		return 0;
	if (asprintf(&path, "%s%s%s", here ? "" : folder, here || slash ? "" : "/", name) < 0)
		path = NULL;
	return path_add(o, path, operand, true, 0);
}

static int folder_add(struct operands *o, const char *folder, size_t operand)
{
	struct dirent **entries = NULL;
	int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int count = folder_fd < 0 ? -1 : scandirat(folder_fd, ".", &entries, NULL, alphasort);
	int err = count < 0 && errno == ENOMEM ? -ENOMEM : 0;

	if (count < 0 && !err) {
		log_line("cannot read %s: %s", folder, strerror(errno));
		o->unread_count++;
	}
	for (int i = 0; i < count; i++) {
		if (!err)
			err = entry_add(o, folder, folder_fd, entries[i]->d_name, operand);
		free(entries[i]);
	}
	free(entries);
	if (folder_fd >= 0)
		close(folder_fd);
	return err;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---- SERVICE[@TIME] */

struct service {
	struct operands *operands; /* gets the files */
	size_t operand;
	char name[SERVICE_NAME_BYTES];
	int64_t time_s;
	bool has_time; /* a time was asked for */
	enum store_moment_wanted wanted;
};

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

/* until_ns: see struct operand_path. */
static int take_chosen(struct service *service, const struct store_list *list, const char *store,
    const size_t *chosen, size_t count, int64_t until_ns)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		char below[PATH_MAX], *path = NULL;

		if (store_list_path(list, &list->files[chosen[i]], below, sizeof(below)) != 0)
			continue;
		if (asprintf(&path, "%s/%s", store, below) < 0)
			path = NULL;
		err = path_add(service->operands, path, service->operand, true,
		    list->files[chosen[i]].class == STORE_PEAK ? until_ns : 0);
	}
	return err;
}

/* The last nanosecond of that second. */
static int64_t end_of(int64_t time_s)
{
	return time_s < INT64_MAX / CLOCK_NS_PER_S - 1 ? (time_s + 1) * CLOCK_NS_PER_S - 1 : INT64_MAX;
}

/* In one store. Returns 1; 0 if it has no such service; or -errno. */
static int find_in(struct service *service, const char *store)
{
	struct store_list list;
	size_t first, count, *chosen, chosen_count = 0;
	int err = store_list_read(&list, store, service->name, false);

	if (err)
		return err == -ENOMEM ? err : 0;
	count = store_list_service(&list, service->name, &first);
	chosen = calloc(count + 1, sizeof(*chosen));
	if (!count || !chosen) {
		err = chosen ? 0 : -ENOMEM;
	} else {
		err = store_moment_choose(
		    &list, first, count, service->time_s, service->wanted, chosen, &chosen_count);
		if (!err && !chosen_count)
			err = say_nothing_then(&list, store, service->name, service->time_s, first);
		if (!err)
			err = take_chosen(service, &list, store, chosen, chosen_count,
			    service->has_time ? end_of(service->time_s) : 0);
		err = err ? err : 1;
	}
	free(chosen);
	store_list_fini(&list);
	return err;
}

/* Says which names of a store are near. If the store has no service: appends why to `empty`;
 * false. */
static bool say_near(const char *store, const char *service, char *empty, size_t empty_bytes)
{
	struct store_list list;
	struct nearest nearest;
	char names[NEAREST_KEPT * NEAREST_WORD_BYTES];
	const int err = store_list_read(&list, store, NULL, false);

	if (err || !list.service_count)
		text_append(empty, empty_bytes, "%s%s (%s)", *empty ? ", " : "", store,
		    err ? strerror(-err) : "no profile in it");
	if (err)
		return false;
	nearest_init(&nearest, service);
	for (size_t i = 0; i < list.service_count; i++)
		nearest_offer(&nearest, list.services[i]);
	nearest_list(&nearest, names, sizeof(names));
	if (list.service_count)
		log_line("%s has no service '%s'%s%s%s (heaptap ls %s lists them)", store, service,
		    *names ? "; did you mean " : "", names, *names ? "?" : "", store);
	const bool has_services = list.service_count > 0;
	store_list_fini(&list);
	return has_services;
}

/* Says which names are near, or keeps for the line about the missing file why no store has any service. */
static void say_unknown(struct operands *o, const char *service,
    char paths[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES], size_t count)
{
	bool said = false;

	o->no_store[0] = '\0';
	for (size_t i = 0; i < count; i++)
		said |= say_near(paths[i], service, o->no_store, sizeof(o->no_store));
	if (said)
		o->no_store[0] = '\0';
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

/* Can the word be a service's name? No file has this path. */
static bool may_be_service(const char *word)
{
	struct stat status;

	return !strchr(word, '/') && stat(word, &status) != 0 && errno == ENOENT;
}

/* Adds the files that the word stands for. Returns 1; 0 if no store has such a service, after a line if the
 * word does not look like a profile; -ENOMEM without a line, or -errno after a
 * line. */
static int service_add(
    struct operands *o, const char *word, size_t operand, const struct operands_services *services)
{
	char paths[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES];
	struct service service = {.operands = o, .operand = operand, .wanted = services->wanted};
	const size_t count = config_file_stores(services->store, paths);
	const int64_t now_s = clock_unix_ns() / CLOCK_NS_PER_S;
	const bool is_service =
	    store_moment_split(word, now_s, service.name, &service.time_s, &service.has_time);
	int ret = 0;

	for (size_t i = 0; is_service && i < count && !ret; i++)
		ret = find_in(&service, paths[i]);
	if (!ret)
		ret = check_time(word, paths, count);
	if (is_service && !operands_is_profile_name(word) && count && !ret)
		say_unknown(o, service.name, paths, count);
	return ret;
}

/* ---- all */

int operands_expand(
    struct operands *o, char *const *words, int count, const struct operands_services *services)
{
	static char dot[] = ".", *const here[] = {dot};
	int err = 0;

	*o = (struct operands){.operand_count = count ? (size_t)count : 1, .is_default = !count};
	if (!count)
		words = here;
	for (size_t i = 0; i < o->operand_count && !err; i++) {
		if (is_folder(words[i])) {
			o->has_folder = true;
			err = folder_add(o, words[i], i);
		} else {
			int found =
			    services && may_be_service(words[i]) ? service_add(o, words[i], i, services) : 0;

			err = found < 0 ? found : found ? 0 : path_add(o, strdup(words[i]), i, false, 0);
		}
		if (err == -ENOMEM)
			log_line("not enough memory");
	}
	return err;
}

void operands_fini(struct operands *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->paths[i].path);
	free(o->paths);
	memset(o, 0, sizeof(*o));
}
