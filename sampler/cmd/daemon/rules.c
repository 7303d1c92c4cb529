/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/rules.h"

#include "pprof/store/config_file.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTIONS "[daemon], [service], [service NAME], [deny], [push NAME]"

static const enum rules_fact denied[] = {RULES_EXE, RULES_UNIT, RULES_CGROUP, RULES_USER};

/* ---- sections */

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
	rules_service_init(&rules->services[rules->service_count++], title, line);
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
			return rules_globs_add(&rules->deny[denied[i]], name, value, error);
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
		return rules_service_set(&rules->services[rules->service_count - 1], name, value, error);
	if (service)
		return rules_service_set(&rules->defaults, name, value, error);
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

		if (rules_service_inherit(service, &rules->defaults)) {
			snprintf(error, error_bytes, "not enough memory");
			return -ENOMEM;
		}
		if (!service->attach || !service->profile || service->faulty ||
		    rules_service_is_choosy(service))
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
	rules_service_init(&rules->defaults, "", 0);
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
	rules_service_fini(&rules->defaults);
	for (size_t i = 0; i < rules->service_count; i++)
		rules_service_fini(&rules->services[i]);
	free(rules->services);
	for (int i = 0; i < RULES_FACTS; i++)
		rules_globs_fini(&rules->deny[i]);
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
