/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/event.h"

#include "pprof/text/nearest.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <perfmon/pfmlib_perf_event.h>

#define RATE_MAX      100000u /* of a clock: the kernel's shortest timer is 10 us */
#define CLOCK_HZ      99u     /* not a divisor of 100 or 1000, the usual rates of periodic work */
#define FAULT_PERIOD  127u    /* a prime, for the same reason */
#define NS_PER_SECOND UINT64_C(1000000000)

/* ---- NAME@HZ, NAME/PERIOD */

static int take_rate(const char *digits, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)digits[0]))
		return -EINVAL;
	errno = 0;
	*number = strtoull(digits, &end, 10);
	return *end || errno || !*number || *number > INT64_MAX ? -EINVAL : 0;
}

int event_split(const char *text, struct event_spec *spec, char *error, size_t error_bytes)
{
	const char *at = strrchr(text, '@'), *slash = strrchr(text, '/'),
	           *rate = at && (!slash || at > slash) ? at : slash;
	size_t length = rate ? (size_t)(rate - text) : strlen(text);

	memset(spec, 0, sizeof(*spec));
	if (!length || length >= sizeof(spec->name)) {
		snprintf(error, error_bytes, length ? "its name is too long" : "it has no name");
		return -EINVAL;
	}
	memcpy(spec->name, text, length);
	if (rate && take_rate(rate + 1, rate == at ? &spec->hz : &spec->period) != 0) {
		snprintf(error, error_bytes, "what follows '%c' must be a whole number above 0", *rate);
		return -EINVAL;
	}
	if (rate && strpbrk(spec->name, "@/")) {
		snprintf(error, error_bytes, "give one rate: @HZ or /PERIOD");
		return -EINVAL;
	}
	for (const char *c = spec->name; *c; c++) {
		if (isgraph((unsigned char)*c) && *c != '\'')
			continue;
		snprintf(error, error_bytes, "its name has characters that no event name has");
		return -EINVAL;
	}
	return 0;
}

/* ---- the library */

#define LIBRARY "libpfm.so.4"

/* The library is loaded only when an event is named. Its tables for all processors take 41,000 relocations,
 * half of the start-up time of a recording, and every fork would copy these pages. */
static struct {
	__typeof__(pfm_initialize) *initialize;
	__typeof__(pfm_get_os_event_encoding) *get_os_event_encoding;
	__typeof__(pfm_get_pmu_info) *get_pmu_info;
	__typeof__(pfm_get_event_info) *get_event_info;
	__typeof__(pfm_get_event_next) *get_event_next;
	__typeof__(pfm_strerror) *strerror;
} pfm;

static bool library_load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* stays loaded to the end of the process */

	if (!library)
		return false;
	*(void **)&pfm.initialize = dlsym(library, "pfm_initialize");
	*(void **)&pfm.get_os_event_encoding = dlsym(library, "pfm_get_os_event_encoding");
	*(void **)&pfm.get_pmu_info = dlsym(library, "pfm_get_pmu_info");
	*(void **)&pfm.get_event_info = dlsym(library, "pfm_get_event_info");
	*(void **)&pfm.get_event_next = dlsym(library, "pfm_get_event_next");
	*(void **)&pfm.strerror = dlsym(library, "pfm_strerror");
	return pfm.initialize && pfm.get_os_event_encoding && pfm.get_pmu_info && pfm.get_event_info &&
	    pfm.get_event_next && pfm.strerror;
}

static bool library_ready(void)
{
	static int state;

	if (!state)
		state = library_load() && pfm.initialize() == PFM_SUCCESS ? 1 : -1;
	return state > 0;
}

static int encode(const char *name, int sides, struct perf_event_attr *attr, int *cpu)
{
	/* The library's version of the struct is older than the kernel's: `size` tells which members the
	 * library knows. */
	pfm_perf_encode_arg_t argument = {.attr = (void *)attr, .size = sizeof(argument)};

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	int result = library_ready()
	    ? pfm.get_os_event_encoding(name, sides, PFM_OS_PERF_EVENT_EXT, &argument)
	    : PFM_ERR_NOTFOUND;
	*cpu = result == PFM_SUCCESS ? argument.cpu : -1;
	return result;
}

/* perf's own names, which people know. */
static bool common_name(const char *name, char *text, size_t text_bytes)
{
	if (strncmp(name, "PERF_COUNT_", 11) == 0)
		return false;
	size_t i = 0;
	for (; name[i] && i + 1 < text_bytes; i++)
		text[i] = (char)tolower((unsigned char)name[i]);
	text[i] = '\0';
	return true;
}

struct visit {
	void (*found)(void *context, const char *name, const char *group);
	void *context;
};

static void visit_tracepoint(void *context, const char *name)
{
	const struct visit *visit = context;

	visit->found(visit->context, name, "tracepoint");
}

static const char *group_of(const char *equal)
{
	if (equal && strncmp(equal, "PERF_COUNT_SW", 13) == 0)
		return "software";
	return equal && strncmp(equal, "PERF_COUNT_HW_CACHE", 19) == 0 ? "cache" : "hardware";
}

static void each_of_pmu(const pfm_pmu_info_t *pmu, const struct visit *visit)
{
	bool generic = strcmp(pmu->name, "perf") == 0;

	for (int i = pmu->first_event; i != -1; i = pfm.get_event_next(i)) {
		pfm_event_info_t info = {.size = sizeof(info)};
		char text[EVENT_TEXT_BYTES];

		if (pfm.get_event_info(i, PFM_OS_PERF_EVENT_EXT, &info) != PFM_SUCCESS)
			continue;
		if (!generic)
			snprintf(text, sizeof(text), "%s::%s", pmu->name, info.name);
		else if (!common_name(info.name, text, sizeof(text)))
			continue;
		visit->found(visit->context, text, generic ? group_of(info.equiv) : pmu->name);
	}
}

int event_each(void (*found)(void *context, const char *name, const char *group), void *context)
{
	struct visit visit = {found, context};
	int i;

	pfm_for_all_pmus(i)
	{
		pfm_pmu_info_t pmu = {.size = sizeof(pmu)};

		if (library_ready() && pfm.get_pmu_info((pfm_pmu_t)i, &pmu) == PFM_SUCCESS &&
		    pmu.is_present && strcmp(pmu.name, "perf_raw") != 0)
			each_of_pmu(&pmu, &visit);
	}
	int error = event_tracepoint_each(visit_tracepoint, &visit);
	return library_ready() ? error : -ELIBACC;
}

/* ---- what the names mean */

static void offer(void *context, const char *name, const char *group)
{
	nearest_offer(context, name);
}

static int fail_unknown(const char *name, char *error, size_t error_bytes)
{
	struct nearest nearest;
	struct event_tracepoint tracepoint;
	char list[NEAREST_KEPT * NEAREST_WORD_BYTES + 8];

	nearest_init(&nearest, name);
	int closed = event_each(offer, &nearest);
	nearest_list(&nearest, list, sizeof(list));
	snprintf(error, error_bytes, "event '%s': there is no such event%s%s%s; `heaptap events` lists them",
	    name,
	    closed && event_tracepoint_parse(name, &tracepoint) ? closed == -EACCES
	            ? " that this user may look up (only root may read tracefs)"
	            : " (no tracefs is mounted)"
	                                                        : "",
	    list[0] ? "; nearest: " : "", list);
	return -EINVAL;
}

static int fail_pfm(const char *name, int result, char *error, size_t error_bytes)
{
	const char *hint = result == PFM_ERR_ATTR || result == PFM_ERR_ATTR_VAL
	    ? " (the part after ':'; u and k select user or kernel)"
	    : result == PFM_ERR_UMASK ? " (the event needs a unit mask, NAME:MASK)"
	                              : "";

	snprintf(error, error_bytes, "event '%s': %s%s", name, pfm.strerror(result), hint);
	return -EINVAL;
}

static int find_tracepoint(const char *name, struct event *event)
{
	struct event_tracepoint tracepoint;
	uint64_t id;

	if (!event_tracepoint_parse(name, &tracepoint))
		return -ENOENT;
	int error = event_tracepoint_find(&tracepoint, &id);
	if (error)
		return error;
	event->part[0].type = PERF_TYPE_TRACEPOINT;
	event->part[0].config = id;
	event->part[0].exclude_kernel = strcmp(tracepoint.modifiers, "u") == 0;
	event->part[0].exclude_user = strcmp(tracepoint.modifiers, "k") == 0;
	event->kernel_wanted = strchr(tracepoint.modifiers, 'k') != NULL;
	event->cpu = -1;
	return 0;
}

static void classify(struct event *event)
{
	const struct perf_event_attr *attr = &event->part[0];

	event->kind = attr->type == PERF_TYPE_SOFTWARE || attr->type == PERF_TYPE_TRACEPOINT ? EVENT_COUNT
	                                                                                     : EVENT_HARDWARE;
	event->parts = 1;
	if (attr->type != PERF_TYPE_SOFTWARE)
		return;
	switch (attr->config) {
	case PERF_COUNT_SW_CPU_CLOCK:
	case PERF_COUNT_SW_TASK_CLOCK:
		event->kind = EVENT_CLOCK;
		break;
	case PERF_COUNT_SW_PAGE_FAULTS:
		event->part[1] = event->part[0];
		event->part[0].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
		event->part[1].config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
		event->parts = 2;
		event->kind = EVENT_FAULT;
		break;
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
		event->kind = EVENT_FAULT;
		break;
	default:
		break;
	}
}

/* "sched-sched_switch" in file names; "sched_sched_switch" as a sample type, which may not have '-'. */
static void name_files(struct event *event, const char *name)
{
	const char *plain = strncmp(name, "perf::", 6) == 0 ? name + 6 : name;
	size_t end = strlen(plain), i;

	if (event->part[0].type != PERF_TYPE_TRACEPOINT && !strstr(plain, "::"))
		end = strcspn(plain, ":");
	for (i = 0; plain[i]; i++) {
		bool fits =
		    isalnum((unsigned char)plain[i]) || plain[i] == '_' || plain[i] == '-' || plain[i] == '.';

		event->label[i] = fits ? (char)tolower((unsigned char)plain[i]) : '-';
		event->type[i] =
		    isalnum((unsigned char)plain[i]) ? (char)tolower((unsigned char)plain[i]) : '_';
	}
	event->label[i] = event->type[i] = '\0';
	event->type[end] = '\0';
	if (event->kind == EVENT_CLOCK)
		snprintf(event->type, sizeof(event->type), "cpu");
}

static int set_clock_rate(struct event *event, const struct event_spec *spec, char *error, size_t error_bytes)
{
	event->period = spec->period ? spec->period : NS_PER_SECOND / (spec->hz ? spec->hz : CLOCK_HZ);
	if (event->period >= NS_PER_SECOND / RATE_MAX)
		return 0;
	snprintf(error, error_bytes,
	    "event '%s': at most %u samples a second, the kernel's timer has no more", event->text, RATE_MAX);
	return -EINVAL;
}

static int set_rate(struct event *event, struct event_spec spec, char *error, size_t error_bytes)
{
	const struct perf_event_attr *attr = &event->part[0];

	if (attr->sample_period && (spec.hz || spec.period)) {
		snprintf(error, error_bytes, "event '%s': the rate is given twice", event->text);
		return -EINVAL;
	}
	if (attr->sample_period && attr->freq)
		spec.hz = attr->sample_freq;
	else if (attr->sample_period)
		spec.period = attr->sample_period;
	if (event->kind == EVENT_CLOCK)
		return set_clock_rate(event, &spec, error, error_bytes);
	if (event->kind != EVENT_HARDWARE && spec.hz) {
		snprintf(error, error_bytes,
		    "event '%s': it takes no @HZ, only /PERIOD (with a rate the kernel does not tell what a "
		    "sample stands for)",
		    event->text);
		return -EINVAL;
	}
	bool rare = event->kind == EVENT_COUNT ||
	    (event->parts == 1 && attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	event->hz = event->kind == EVENT_HARDWARE && !spec.period ? (spec.hz ? spec.hz : CLOCK_HZ) : 0;
	event->period = spec.period ? spec.period : event->kind == EVENT_FAULT && !rare ? FAULT_PERIOD : 1;
	return 0;
}

static int look_up(const char *name, struct event *event, char *error, size_t error_bytes)
{
	struct perf_event_attr user_only;
	int result = encode(name, PFM_PLM0 | PFM_PLM3, &event->part[0], &event->cpu), cpu;

	if (result == PFM_SUCCESS) {
		/* Encodes the event again with the user's side as default. If the kernel's side is still
		 * counted, a modifier asks for it. */
		event->kernel_wanted =
		    encode(name, PFM_PLM3, &user_only, &cpu) == PFM_SUCCESS && !user_only.exclude_kernel;
		return 0;
	}
	memset(&event->part[0], 0, sizeof(event->part[0]));
	if (find_tracepoint(name, event) == 0)
		return 0;
	if (!library_ready()) {
		snprintf(error, error_bytes,
		    "event '%s': %s, which is needed for event names, cannot be loaded", name, LIBRARY);
		return -EINVAL;
	}
	if (result == PFM_ERR_NOTFOUND || result == PFM_ERR_INVAL)
		return fail_unknown(name, error, error_bytes);
	return fail_pfm(name, result, error, error_bytes);
}

int event_parse(const char *text, struct event *event, char *error, size_t error_bytes)
{
	struct event_spec spec;
	char clause[128];

	memset(event, 0, sizeof(*event));
	if (event_split(text, &spec, clause, sizeof(clause)) != 0) {
		snprintf(error, error_bytes, "event '%s': %s", text, clause);
		return -EINVAL;
	}
	snprintf(event->text, sizeof(event->text), "%s", text);
	int result = look_up(spec.name, event, error, error_bytes);
	if (result)
		return result;
	classify(event);
	name_files(event, spec.name);
	return set_rate(event, spec, error, error_bytes);
}

/* For one fault or switch, Linux passes the same struct to all events concerned, and the first event's id
 * stays in it. So samples of the second event were counted as the first's (6.18; perf_swevent_event,
 * __perf_event_header__init_id). Timers and tracepoints have a struct for each event. */
bool event_clashes(const struct event *event, const struct event *other)
{
	for (uint32_t i = 0; i < event->parts; i++)
		for (uint32_t j = 0; j < other->parts; j++)
			if (event->part[i].type == PERF_TYPE_SOFTWARE && event->kind != EVENT_CLOCK &&
			    other->part[j].type == PERF_TYPE_SOFTWARE &&
			    event->part[i].config == other->part[j].config)
				return true;
	return false;
}

double event_scale(uint64_t enabled_ns, uint64_t running_ns)
{
	if (!running_ns || running_ns >= enabled_ns)
		return 1;
	return (double)enabled_ns / (double)running_ns;
}

bool event_is_of_kernel(const struct event *event)
{
	const struct perf_event_attr *attr = &event->part[0];

	if (attr->type == PERF_TYPE_SOFTWARE)
		return event->kind == EVENT_COUNT;
	/* Tracepoints of system calls report the user's registers. */
	return attr->type == PERF_TYPE_TRACEPOINT && strncmp(event->text, "syscalls:", 9) != 0 &&
	    strncmp(event->text, "raw_syscalls:", 13) != 0 && strncmp(event->text, "uprobes:", 8) != 0;
}

void event_describe_rate(const struct event *event, char *text, size_t text_bytes)
{
	if (event->kind == EVENT_CLOCK)
		snprintf(text, text_bytes, "a sample every %" PRIu64 " ns of CPU time", event->period);
	else if (event->hz)
		snprintf(text, text_bytes, "about %" PRIu64 " samples a second", event->hz);
	else if (event->period == 1)
		snprintf(text, text_bytes, "every one is a sample");
	else
		snprintf(text, text_bytes, "one of %" PRIu64 " is a sample", event->period);
}
