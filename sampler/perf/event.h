/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf event that the user names, to be sampled beside the heap:
 *
 *     NAME[@HZ | /PERIOD]      cpu-clock@99   page-faults/1   cycles:u@999   sched:sched_switch
 *
 * Names and modifiers are libpfm4's; `subsystem:name` is a tracepoint, which we look up ourselves.
 *
 *   kind       default     what a sample stands for
 *   clock      @99         PERIOD ns of CPU time: for a clock, rate and period are equivalent
 *   hardware   @99         as many events as the kernel says: it changes the period to hold the rate
 *   fault      /127        PERIOD faults, and their pages: 127 pages of 4 KiB are about the heap's 512 KiB
 *   count      /1          PERIOD occurrences
 *
 * Faults and counts have no @HZ: with a rate, the kernel's period of a sample is wrong by up to three orders
 * of magnitude (131122 faults in 0.1 s at 99 Hz: 11 samples that claimed 161658521, on Linux 6.18).
 *
 * page-faults is sampled as minor-faults and major-faults. These fire after a fault was served, when the
 * kernel knows the page's size; page-faults itself fires before there is a page.
 */
#ifndef SAMPLER_PERF_EVENT_H
#define SAMPLER_PERF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

enum event_kind {
	EVENT_CLOCK,
	EVENT_HARDWARE,
	EVENT_FAULT,
	EVENT_COUNT,
};

enum { EVENTS_MAX = 16, EVENT_PARTS = 2, EVENT_TEXT_BYTES = 128 };

/* NAME and its rate, parsed. */
struct event_spec {
	char name[EVENT_TEXT_BYTES];
	uint64_t hz, period; /* 0: not given; never both */
};

struct event {
	char text[EVENT_TEXT_BYTES];  /* as given */
	char label[EVENT_TEXT_BYTES]; /* in the names of files: "cpu-clock", "sched-sched_switch" */
	char type[EVENT_TEXT_BYTES];  /* as a sample type: "cpu", "page_faults", "sched_sched_switch" */
	enum event_kind kind;
	uint64_t hz;     /* 0: one sample every `period` */
	uint64_t period; /* ns of a clock, else events */
	int cpu;         /* -1: on all */
	/* what is counted, and on which side of the kernel's border; counters.c sets the rest */
	struct perf_event_attr part[EVENT_PARTS];
	uint32_t parts;
	bool kernel_wanted;  /* a modifier asks for the kernel's side */
	bool kernel_refused; /* the kernel's side is left out because it is not permitted */
};

/* Returns 0, or -EINVAL with a clause in `error`. Pure. */
int event_split(const char *text, struct event_spec *spec, char *error, size_t error_bytes);

/* Looks up the event on this machine. Returns 0, or -EINVAL with one line in `error`, which lists the nearest
 * names if there is no such event. */
int event_parse(const char *text, struct event *event, char *error, size_t error_bytes);

/* True if the two cannot be sampled at the same time. */
bool event_clashes(const struct event *event, const struct event *other);

/* The factor that corrects for multiplexing: enabled / running. Pure. */
double event_scale(uint64_t enabled_ns, uint64_t running_ns);

/* Does the event happen only on the kernel's side, as a task switch or a tracepoint outside system calls? */
bool event_is_of_kernel(const struct event *event);

/* "one sample per 10101010 ns of CPU time" */
void event_describe_rate(const struct event *event, char *text, size_t text_bytes);

/* Lists the events of libpfm4, such as "cpu-clock" in "software", and then the tracepoints. Returns 0, -errno
 * of event_tracepoint_each, or -ELIBACC if there is no libpfm4. */
int event_each(void (*found)(void *context, const char *name, const char *group), void *context);

/*
 * ---- tracepoints by name, `subsystem:name`, from tracefs (event_tracepoint.c)
 *
 * libpfm4 looks for them in debugfs, which most machines no longer mount.
 */
enum { EVENT_TRACEPOINT_PART_BYTES = 64 };

struct event_tracepoint {
	char subsystem[EVENT_TRACEPOINT_PART_BYTES], name[EVENT_TRACEPOINT_PART_BYTES];
	char modifiers[4]; /* "", "u", "k" or "uk" */
};

/* Parses "sched:sched_switch" or "sched:sched_switch:u". False for any other form. Pure. */
bool event_tracepoint_parse(const char *text, struct event_tracepoint *name);

/* Finds the number for perf_event_attr.config. Returns 0, -ENOENT (no such tracepoint), -EACCES (only root
 * may read tracefs) or -ENODEV (no tracefs is mounted). */
int event_tracepoint_find(const struct event_tracepoint *name, uint64_t *id);

/* Calls `found` with each "subsystem:name", in the file system's order. Returns 0 or -errno as above. */
int event_tracepoint_each(void (*found)(void *context, const char *name), void *context);

#endif
