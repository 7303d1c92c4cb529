/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/rules_service.h"

#include "pprof/table/array.h"
#include "pprof/text/quantity.h"

#include <errno.h>
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

void rules_globs_fini(struct rules_globs *globs)
{
	for (size_t i = 0; i < globs->count; i++)
		free(globs->globs[i]);
	free(globs->globs);
	*globs = (struct rules_globs){0};
}

int rules_globs_add(
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

/* ---- the section */

void rules_service_init(struct rules_service *service, const char *title, int line)
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

void rules_service_fini(struct rules_service *service)
{
	for (int i = 0; i < RULES_FACTS; i++)
		rules_globs_fini(&service->match[i]);
	labels_fini(&service->labels);
	*service = (struct rules_service){0};
}

bool rules_service_is_choosy(const struct rules_service *service)
{
	for (int i = 0; i < RULES_FACTS; i++)
		if (service->match[i].count)
			return true;
	return false;
}

/* ---- keys */

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
		return rules_globs_add(&service->match[i], name, value, error);
	}
	return ini_text_wrong(error, "'%s' is none of " KEYS, name);
}

int rules_service_set(
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

/* ---- defaults */

int rules_service_inherit(struct rules_service *service, const struct rules_service *defaults)
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
