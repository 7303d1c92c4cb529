/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/rules.h"

#include "pprof/store/config_file.h"
#include "pprof/table/array.h"
#include "pprof/text/quantity.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_BYTES_MOST     (UINT64_C(1) << 40)
#define SAMPLES_PER_HOUR_MOST UINT64_C(100000000)
#define INTERVAL_NS_LEAST     (UINT64_C(1) * 1000000000) /* names in the store have seconds */
#define INTERVAL_NS_MOST      (UINT64_C(1000) * 3600 * 1000000000)
#define KEEP_MOST             UINT64_C(1000000)
#define KEYS                                                                             \
	"match.exe, match.comm, match.unit, match.cgroup, match.container, match.user, " \
	"period, samples-per-hour, interval, keep, attach, label.KEY, profile"

static const char *const fact_names[RULES_FACTS] = {
    [RULES_EXE] = "exe",
    [RULES_COMM] = "comm",
    [RULES_UNIT] = "unit",
    [RULES_CGROUP] = "cgroup",
    [RULES_CONTAINER] = "container",
    [RULES_USER] = "user",
};

const char *rules_fact_name(enum rules_fact fact)
{
	return fact_names[fact];
}

/* ---- globs */

static void globs_fini(struct rules_globs *globs)
{
	for (size_t i = 0; i < globs->count; i++)
		free(globs->globs[i]);
	free(globs->globs);
	*globs = (struct rules_globs){0};
}

/* Adds a glob. key: for the error line. 0, or -errno with a line in error. */
static int globs_add(
    struct rules_globs *globs, const char *key, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	char *copy;

	if (!*value)
		return ini_text_wrong(error, "%s is empty; give a glob such as */redis-server", key);
	copy = strdup(value);
	if (!copy || array_reserve(&globs->globs, &globs->room, globs->count + 1, sizeof(copy))) {
		free(copy);
		return -ENOMEM;
	}
	globs->globs[globs->count++] = copy;
	return 0;
}

/* ---- a section */

/* Begins a section. title "": [service], with the defaults. */
static void service_init(struct rules_service *service, const char *title, int line)
{
	*service = (struct rules_service){
	    .line = line,
	    .period_bytes = RULES_PERIOD_BYTES_DEFAULT,
	    .interval_ns = RULES_INTERVAL_NS_DEFAULT,
	    .profile = true,
	};
	snprintf(service->title, sizeof(service->title), "%s", title);
	if (*title)
		service_name_clean(title, service->name);
}

static void service_fini(struct rules_service *service)
{
	for (int i = 0; i < RULES_FACTS; i++)
		globs_fini(&service->match[i]);
	labels_fini(&service->labels);
	*service = (struct rules_service){0};
}

/* Has the section a `match` key? */
static bool is_choosy(const struct rules_service *service)
{
	for (int i = 0; i < RULES_FACTS; i++)
		if (service->match[i].count)
			return true;
	return false;
}

/* ---- its keys */

static int set_period(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	if (quantity_bytes(value, 1, PERIOD_BYTES_MOST, &service->period_bytes))
		return ini_text_wrong(error, "period '%s' is not 1 to 1024G bytes, for example 512K", value);
	service->samples_per_hour = 0;
	return 0;
}

static int set_samples(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	const char *suffix;

	if (quantity_number(value, &service->samples_per_hour, &suffix) || *suffix ||
	    !service->samples_per_hour || service->samples_per_hour > SAMPLES_PER_HOUR_MOST)
		return ini_text_wrong(
		    error, "samples-per-hour '%s' is not a whole number, 1 to 100000000", value);
	service->period_bytes = 0;
	return 0;
}

static int set_interval(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	if (quantity_time(value, INTERVAL_NS_LEAST, INTERVAL_NS_MOST, &service->interval_ns))
		return ini_text_wrong(error,
		    "interval '%s' is neither 0 nor 1s to 1000h with the unit, for example 10s or 5m", value);
	return 0;
}

static int set_keep(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	const char *suffix;

	if (quantity_number(value, &service->keep, &suffix) || *suffix || service->keep > KEEP_MOST)
		return ini_text_wrong(
		    error, "keep '%s' is not a whole number, 0 (what the store keeps) to 1000000", value);
	return 0;
}

/* Refuses the key `events` by its name: users of `record -e` look for it. */
static int refuse_events(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	(void)service;
	(void)value;
	return ini_text_wrong(error,
	    "the daemon samples no perf events: take the line out; heaptap record -e EVENT --pid PID does, "
	    "and /debug/pprof/profile of heaptap serve");
}

static int set_switch(bool *to, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return ini_text_wrong(error, "%s '%s' is neither yes nor no", name, value);
	*to = *value == 'y';
	return 0;
}

static int set_attach(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	return set_switch(&service->attach, "attach", value, error);
}

static int set_profile(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	return set_switch(&service->profile, "profile", value, error);
}

static int add_label(
    struct rules_service *service, const char *key, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	char clean[LABELS_NAME_BYTES + 2];

	labels_name_clean(key, strlen(key), clean);
	if (!*clean || strncmp(clean, "__", 2) == 0)
		return ini_text_wrong(error,
		    "label.%s is no name for a label: letters, digits and '_', not beginning with __", key);
	if (strcmp(clean, "service_name") == 0)
		return ini_text_wrong(error, "label.service_name is the name in [service NAME]");
	if (!*value)
		return ini_text_wrong(error, "label.%s is empty", key);
	if (labels_find(&service->labels, clean))
		return ini_text_wrong(error, "label.%s is given twice", key);
	if (service->labels.count == RULES_LABELS_MOST)
		return ini_text_wrong(error, "more than %d labels", RULES_LABELS_MOST);
	return labels_add(&service->labels, clean, value);
}

static const struct {
	const char *name;
	int (*set)(struct rules_service *service, const char *value, char error[INI_TEXT_ERROR_BYTES]);
} keys[] = {
    {"period", set_period},
    {"samples-per-hour", set_samples},
    {"interval", set_interval},
    {"keep", set_keep},
    {"events", refuse_events},
    {"attach", set_attach},
    {"profile", set_profile},
};

enum { PERIOD, SAMPLES, INTERVAL, KEEP, EVENTS, ATTACH, PROFILE, KEY_COUNT };

_Static_assert(sizeof(keys) / sizeof(keys[0]) == KEY_COUNT, "a number for each");

static int add_match(
    struct rules_service *service, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	for (int i = 0; i < RULES_FACTS; i++) {
		if (strcmp(name + strlen("match."), fact_names[i]) != 0)
			continue;
		if (!*service->title)
			return ini_text_wrong(error,
			    "%s is for [service NAME]: [service] has the defaults of all services", name);
		return globs_add(&service->match[i], name, value, error);
	}
	return ini_text_wrong(error, "'%s' is none of " KEYS, name);
}

/* Sets KEY = VALUE. 0, or -errno with a line in error: what is wrong, and what is allowed. */
static int set_key(
    struct rules_service *service, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	if (strncmp(name, "match.", strlen("match.")) == 0)
		return add_match(service, name, value, error);
	if (strncmp(name, "label.", strlen("label.")) == 0)
		return add_label(service, name + strlen("label."), value, error);
	for (unsigned int i = 0; i < KEY_COUNT; i++) {
		if (strcmp(name, keys[i].name) != 0)
			continue;
		if (service->given & 1u << i)
			return ini_text_wrong(error, "%s is given twice", name);
		service->given |= 1u << i;
		if ((service->given & (1u << PERIOD | 1u << SAMPLES)) == (1u << PERIOD | 1u << SAMPLES))
			return ini_text_wrong(
			    error, "period and samples-per-hour exclude each other: give one of them");
		return keys[i].set(service, value, error);
	}
	return ini_text_wrong(error, "'%s' is none of " KEYS, name);
}

/* Takes the keys that are not given from [service]. 0 or -ENOMEM. */
static int inherit(struct rules_service *service, const struct rules_service *defaults)
{
	int err = 0;

	if (!(service->given & (1u << PERIOD | 1u << SAMPLES))) {
		service->period_bytes = defaults->period_bytes;
		service->samples_per_hour = defaults->samples_per_hour;
	}
	if (!(service->given & 1u << INTERVAL))
		service->interval_ns = defaults->interval_ns;
	if (!(service->given & 1u << KEEP))
		service->keep = defaults->keep;
	if (!(service->given & 1u << ATTACH))
		service->attach = defaults->attach;
	if (!(service->given & 1u << PROFILE))
		service->profile = defaults->profile;
	for (size_t i = 0; i < defaults->labels.count && !err; i++)
		err = labels_add(
		    &service->labels, defaults->labels.rows[i].name, defaults->labels.rows[i].value);
	return err;
}

#define SECTIONS "[daemon], [service], [service NAME], [deny], [push NAME]"

static const enum rules_fact denied[] = {RULES_EXE, RULES_UNIT, RULES_CGROUP, RULES_USER};

/* ---- the sections of the file */

/* NAME of "WORD NAME", or "" of "WORD". NULL if it is another section. */
static const char *name_of(const char *section, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(section, word, length) != 0 || (section[length] && section[length] != ' '))
		return NULL;
	return section + length + strspn(section + length, " ");
}

static int add_service(struct rules *rules, const char *title, int line, char error[INI_TEXT_ERROR_BYTES])
{
	if (rules->service_count == RULES_SERVICES_MOST)
		return ini_text_wrong(error, "more than %d [service NAME] sections", RULES_SERVICES_MOST);
	if (array_reserve(
	        &rules->services, &rules->service_room, rules->service_count + 1, sizeof(*rules->services)))
		return -ENOMEM;
	service_init(&rules->services[rules->service_count++], title, line);
	return 0;
}

static int on_section(void *context, const char *section, int line, char error[INI_TEXT_ERROR_BYTES])
{
	const char *service = name_of(section, "service"), *push = name_of(section, "push");

	if (service && *service)
		return add_service(context, service, line, error);
	if (push && !*push)
		return ini_text_wrong(error, "[push] has no name: [push NAME]");
	if (service || push || strcmp(section, "daemon") == 0 || strcmp(section, "deny") == 0)
		return 0;
	return ini_text_wrong(error, "[%s] is none of " SECTIONS, section);
}

static int add_denied(
    struct rules *rules, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		if (strcmp(name, rules_fact_name(denied[i])) == 0)
			return globs_add(&rules->deny[denied[i]], name, value, error);
	return ini_text_wrong(error, "'%s' is none of exe, unit, cgroup, user", name);
}

/* Passes a fault on, and notes it in the section that is being read, if that is a service. */
static void on_fault(void *context, const char *text)
{
	struct rules *rules = context;

	if (rules->service_count)
		rules->services[rules->service_count - 1].faulty = true;
	rules->fault(text);
	rules->fault_count++;
}

static int on_value(void *context, const char *section, const char *name, const char *value, int line,
    char error[INI_TEXT_ERROR_BYTES])
{
	struct rules *rules = context;
	const char *service = name_of(section, "service");

	if (!*section)
		return ini_text_wrong(error, "'%s' stands before the first section: " SECTIONS, name);
	if (service && *service)
		return set_key(&rules->services[rules->service_count - 1], name, value, error);
	if (service)
		return set_key(&rules->defaults, name, value, error);
	if (strcmp(section, "daemon") == 0)
		return daemon_section_set(&rules->daemon, name, value, error);
	return strcmp(section, "deny") == 0 ? add_denied(rules, name, value, error) : 0;
}

/* ---- the whole */

/* Checks what can be checked only when the whole file is read. Services with a fault are passed over,
 * since the fault may be the reason. 0, or -errno with the first fault in `error`. */
static int complete(struct rules *rules, const char *name, char *error, size_t error_bytes)
{
	char text[RULES_TITLE_BYTES + 4096 + 256];
	int err = 0;

	for (size_t i = 0; i < rules->service_count; i++) {
		struct rules_service *service = &rules->services[i];

		if (inherit(service, &rules->defaults)) {
			snprintf(error, error_bytes, "not enough memory");
			return -ENOMEM;
		}
		if (!service->attach || !service->profile || service->faulty || is_choosy(service))
			continue;
		snprintf(text, sizeof(text),
		    "%s:%d: [service %s] would attach to every process; give it a match.exe, match.unit or "
		    "another match, or attach = no",
		    name, service->line, service->title);
		if (!err)
			snprintf(error, error_bytes, "%s", text);
		err = -EINVAL;
		if (!rules->fault)
			return err;
		on_fault(rules, text);
	}
	return err;
}

/* Begins to read. fault: see struct ini_text_reader; NULL: the first fault ends the reading. */
static struct ini_text_reader begin(struct rules *rules, void (*fault)(const char *text))
{
	*rules = (struct rules){.fault = fault};
	daemon_section_init(&rules->daemon);
	service_init(&rules->defaults, "", 0);
	return (struct ini_text_reader){
	    .section = on_section, .value = on_value, .fault = fault ? on_fault : NULL, .context = rules};
}

/* Ends the reading. err: its result. */
static int end(struct rules *rules, int err, const char *name, char *error, size_t error_bytes)
{
	char ignored[INI_TEXT_ERROR_BYTES];
	int later;

	if (err && (err != -EINVAL || !rules->fault))
		return err;
	later = complete(rules, name, err ? ignored : error, err ? sizeof(ignored) : error_bytes);
	return err ? err : later;
}

int rules_parse(struct rules *rules, const char *text, const char *name, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = begin(rules, NULL);

	return end(rules, ini_text_parse(&reader, text, name, error, error_bytes), name, error, error_bytes);
}

static int read_file(struct rules *rules, const struct ini_text_reader *reader, const char *path, char *error,
    size_t error_bytes)
{
	char own[DAEMON_SECTION_PATH_BYTES];
	int err;

	if (!path && daemon_section_file(own) != 0)
		return 0;
	err = config_file_read(reader, path ? path : own, error, error_bytes);
	if (!path && err == -ENOENT)
		return 0;
	return end(rules, err, path ? path : own, error, error_bytes);
}

int rules_read(struct rules *rules, const char *path, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = begin(rules, NULL);

	return read_file(rules, &reader, path, error, error_bytes);
}

void rules_fini(struct rules *rules)
{
	daemon_section_fini(&rules->daemon);
	service_fini(&rules->defaults);
	for (size_t i = 0; i < rules->service_count; i++)
		service_fini(&rules->services[i]);
	free(rules->services);
	for (int i = 0; i < RULES_FACTS; i++)
		globs_fini(&rules->deny[i]);
	*rules = (struct rules){0};
}

static void print_fault(const char *text)
{
	puts(text);
}

int rules_check(const char *path)
{
	struct rules rules;
	char error[INI_TEXT_ERROR_BYTES + 4096];
	const struct ini_text_reader reader = begin(&rules, print_fault);
	int err = read_file(&rules, &reader, path, error, sizeof(error));

	if (!rules.fault_count)
		puts(err ? error : "ok");
	rules_fini(&rules);
	return err;
}
