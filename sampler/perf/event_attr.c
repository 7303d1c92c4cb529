/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/event_attr.h"

#include "sampler/linux/regs.h"
#include "sampler/perf/features.h"
#include "sampler/perf/record.h"
#include "sampler/perf/ring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- attributes */

static void common_attr(struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = RING_CLOCK;
	attr->watermark = 1;
	attr->inherit = 1;
	attr->disabled = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
	    (features_has(FEATURES_LOST) ? PERF_FORMAT_LOST : 0);
}

void event_attr_tracker(struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	common_attr(attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->sample_period = 1;
	attr->sample_type = RECORD_EVENT_TYPE;
	attr->exclude_kernel = attr->exclude_hv = 1;
	attr->mmap = attr->mmap2 = 1;
	attr->build_id = features_has(FEATURES_BUILD_ID);
	attr->comm = attr->comm_exec = 1;
	attr->task = 1;
}

void event_attr_part(
    struct perf_event_attr *attr, const struct event *event, uint32_t part, uint32_t dump_bytes)
{
	*attr = event->part[part];
	common_attr(attr);
	attr->freq = event->hz != 0;
	if (event->hz)
		attr->sample_freq = event->hz;
	else
		attr->sample_period = event->period;
	attr->sample_type = RECORD_EVENT_TYPE | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	/* Without a frequency this field would make every event a sample, whatever the period
	 * (perf_swevent_event). */
	if (event->hz)
		attr->sample_type |= PERF_SAMPLE_PERIOD;
	if (!attr->exclude_kernel)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (event->kind == EVENT_FAULT && features_has(FEATURES_DATA_PAGE_SIZE))
		attr->sample_type |= PERF_SAMPLE_DATA_PAGE_SIZE;
	attr->exclude_callchain_user = 1;
	attr->sample_regs_user = regs_arch_native()->perf_mask;
	attr->sample_stack_user = dump_bytes;
}

/* ---- trying */

static int try_part(const struct event *event, uint32_t part)
{
	struct perf_event_attr attr;

	event_attr_part(&attr, event, part, 4096);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, event->cpu, -1, PERF_FLAG_FD_CLOEXEC),
	    error = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return error;
}

static int try_all(const struct event *event)
{
	int error = 0;

	for (uint32_t i = 0; i < event->parts && !error; i++)
		error = try_part(event, i);
	return error;
}

static const char *reason_of(int error, const struct event *event, const char **remedy)
{
	*remedy = features_refusal_remedy(error);
	switch (-error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		if (event->kind != EVENT_HARDWARE)
			return "this kernel does not have it";
		*remedy = "a machine with hardware counters; virtual machines seldom have them";
		return "there is no hardware counter for it here";
	case EINVAL:
		return "the kernel has it, but not for samples with stacks, or not in this combination";
	default:
		return features_refusal_reason(error);
	}
}

int event_try(struct event *event, char *reason, size_t reason_bytes, const char **remedy)
{
	int error = try_all(event);
	bool both_sides = !event->part[0].exclude_kernel && !event->part[0].exclude_user;

	if ((error == -EACCES || error == -EPERM) && both_sides && !event->kernel_wanted) {
		for (uint32_t i = 0; i < event->parts; i++)
			event->part[i].exclude_kernel = event->part[i].exclude_hv = 1;
		event->kernel_refused = true;
		error = try_all(event);
	}
	if (error) {
		snprintf(reason, reason_bytes, "%s", reason_of(error, event, remedy));
	} else if (event_is_of_kernel(event) && event->part[0].exclude_kernel) {
		error = -EACCES;
		reason_of(error, event, remedy);
		snprintf(
		    reason, reason_bytes, "it happens on the kernel's side, which this user may not see");
	}
	return error;
}

/* An event that clashes with an earlier one is an error, too. */
static int prepare(const char *text, struct event *events, size_t number, char *error)
{
	char reason[256];
	const char *fix;

	if (event_parse(text, &events[number], error, EVENTS_ERROR_BYTES) != 0)
		return -EINVAL;
	if (event_try(&events[number], reason, sizeof(reason), &fix) != 0) {
		snprintf(error, EVENTS_ERROR_BYTES, "event '%s' cannot be sampled: %s%s%s",
		    events[number].text, reason, fix[0] ? "; fix: " : "", fix);
		return -EINVAL;
	}
	for (size_t i = 0; i < number; i++) {
		if (!event_clashes(&events[i], &events[number]))
			continue;
		snprintf(error, EVENTS_ERROR_BYTES,
		    "event '%s' cannot be sampled beside '%s': the kernel cannot tell them apart and would "
		    "mix their samples up",
		    events[number].text, events[i].text);
		return -EINVAL;
	}
	return 0;
}

int events_choose(
    const char *const *texts, size_t count, struct event *events, char error[EVENTS_ERROR_BYTES])
{
	for (size_t i = 0; i < count; i++)
		if (prepare(texts[i], events, i, error))
			return -EINVAL;
	return 0;
}
