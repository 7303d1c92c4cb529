/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/counters.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 12 };

/* If there is no room, a process that was in no list for so long is forgotten. */
#define CROWDED_NS (UINT64_C(60) * 1000000000)

struct service {
	struct service *next;
	size_t processes; /* that are remembered */
	struct counters_sum sum;
	char name[];
};

/* A process or a sampler, and what it had counted when it was last seen. Of a sampler only cpu_ns. */
struct seen {
	struct seen *next;
	pid_t pid;
	int64_t start_unix_ns;
	uint64_t seen_ns;
	struct service *service;
	struct counters_sum last;
	uint64_t cpu_ns;
};

struct table {
	struct seen *buckets[BUCKETS];
	size_t count, most;
};

struct counters {
	struct table processes, samplers;
	struct service *services[BUCKETS];
	uint64_t cpu_ns;
};

struct counters *counters_new(void)
{
	struct counters *counters = calloc(1, sizeof(*counters));

	if (counters) {
		counters->processes.most = COUNTERS_PROCESSES_MAX;
		counters->samplers.most = COUNTERS_SAMPLERS_MAX;
	}
	return counters;
}

/* ---- services */

static struct service **service_link(const struct counters *counters, const char *name)
{
	uint32_t hash = index_fold(index_mix_bytes(index_seed(), name, strlen(name)));
	struct service *const *link = &counters->services[hash % BUCKETS];

	while (*link && strcmp((*link)->name, name) != 0)
		link = &(*link)->next;
	return (struct service **)link;
}

static struct service *service_of(struct counters *counters, const char *name)
{
	struct service **link = service_link(counters, name);
	size_t length = strlen(name) + 1;

	if (!*link) {
		*link = calloc(1, sizeof(**link) + length);
		if (*link)
			memcpy((*link)->name, name, length);
	}
	return *link;
}

static void service_leave(struct counters *counters, struct service *service)
{
	struct service **link;

	if (!service || --service->processes)
		return;
	link = service_link(counters, service->name);
	*link = service->next;
	free(service->sum.losses);
	free(service);
}

/* ---- those that were seen */

static struct seen **bucket_of(struct table *table, pid_t pid, int64_t start_unix_ns)
{
	uint64_t hash = index_mix(index_mix(index_seed(), (uint64_t)pid), (uint64_t)start_unix_ns);

	return &table->buckets[index_fold(hash) % BUCKETS];
}

static void forget_before(struct counters *counters, struct table *table, uint64_t seen_ns)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct seen **link = &table->buckets[i]; *link;) {
			struct seen *seen = *link;

			if (seen->seen_ns >= seen_ns) {
				link = &seen->next;
				continue;
			}
			*link = seen->next;
			service_leave(counters, seen->service);
			free(seen->last.losses);
			free(seen);
			table->count--;
		}
	}
}

static struct seen *find_or_make(struct counters *counters, struct table *table, pid_t pid,
    int64_t start_unix_ns, size_t most, uint64_t now_ns)
{
	struct seen **bucket = bucket_of(table, pid, start_unix_ns), *seen = *bucket;

	while (seen && (seen->pid != pid || seen->start_unix_ns != start_unix_ns))
		seen = seen->next;
	/* ended processes make room, but not for foreign ones */
	if (!seen && table->count >= table->most && most == table->most && now_ns > CROWDED_NS)
		forget_before(counters, table, now_ns - CROWDED_NS);
	if (!seen && table->count < most) {
		seen = calloc(1, sizeof(*seen));
		if (!seen)
			return NULL;
		seen->pid = pid;
		seen->start_unix_ns = start_unix_ns;
		seen->next = *bucket;
		*bucket = seen;
		table->count++;
	}
	if (seen)
		seen->seen_ns = now_ns;
	return seen;
}

/* ---- counting */

/* Sets *seen to `to`, unless it is more already. Returns by how much it has grown. */
static uint64_t advance(uint64_t *seen, uint64_t to)
{
	uint64_t more = to > *seen ? to - *seen : 0;

	*seen += more;
	return more;
}

/* The count of that cause in the sum; NULL if there is no memory or there are too many causes. */
static uint64_t *loss_of(struct counters_sum *sum, const char *cause)
{
	struct counters_loss *loss;
	char name[COUNTERS_CAUSE_BYTES];

	snprintf(name, sizeof(name), "%s", cause);
	for (size_t i = 0; i < sum->loss_count; i++)
		if (strcmp(sum->losses[i].cause, name) == 0)
			return &sum->losses[i].count;
	if (sum->loss_count == CONTROL_LOSSES_MAX ||
	    array_reserve(&sum->losses, &sum->loss_room, sum->loss_count + 1, sizeof(*sum->losses)))
		return NULL;
	loss = &sum->losses[sum->loss_count++];
	memcpy(loss->cause, name, sizeof(name));
	loss->count = 0;
	return &loss->count;
}

static void count(struct counters_sum *sum, struct counters_sum *last, const struct control_process *listed)
{
	sum->samples += advance(&last->samples, listed->samples);
	if (isfinite(listed->alloc_bytes)) {
		sum->alloc_known = true;
		sum->alloc_bytes += fmax(listed->alloc_bytes - last->alloc_bytes, 0);
		last->alloc_bytes = fmax(listed->alloc_bytes, last->alloc_bytes);
	}
	for (size_t i = 0; i < listed->loss_count; i++) {
		uint64_t *to = loss_of(sum, listed->losses[i].cause),
		         *seen = loss_of(last, listed->losses[i].cause);

		if (to && seen)
			*to += advance(seen, listed->losses[i].count);
	}
}

void counters_note(struct counters *counters, const char *service, const struct control_process *listed,
    bool foreign, uint64_t now_ns)
{
	size_t most = foreign ? counters->processes.most / 2 : counters->processes.most;
	int64_t start_unix_ns = listed->start_unix_ns ? listed->start_unix_ns : listed->since_unix_ns;
	struct service *now = service_of(counters, service);
	struct seen *seen;

	if (!now)
		return;
	now->processes++; /* keeps the service while others make room */
	seen = find_or_make(counters, &counters->processes, listed->pid, start_unix_ns, most, now_ns);
	if (!seen) {
		service_leave(counters, now);
		return;
	}
	/* A process can change its service. Each service keeps what was counted while the process
	 * was in it. */
	service_leave(counters, seen->service);
	seen->service = now;
	count(&now->sum, &seen->last, listed);
}

void counters_note_sampler(struct counters *counters, const struct control_daemon *sampler, uint64_t now_ns)
{
	struct seen *seen;

	if (!sampler->pid)
		return;
	seen = find_or_make(counters, &counters->samplers, sampler->pid, sampler->since_unix_ns,
	    counters->samplers.most, now_ns);
	if (seen)
		counters->cpu_ns += advance(&seen->cpu_ns, sampler->cpu_ns);
}

void counters_sweep(struct counters *counters, uint64_t now_ns)
{
	if (now_ns < COUNTERS_REMEMBERED_NS)
		return;
	forget_before(counters, &counters->processes, now_ns - COUNTERS_REMEMBERED_NS);
	forget_before(counters, &counters->samplers, now_ns - COUNTERS_REMEMBERED_NS);
}

void counters_free(struct counters *counters)
{
	if (!counters)
		return;
	forget_before(counters, &counters->processes, UINT64_MAX);
	forget_before(counters, &counters->samplers, UINT64_MAX);
	free(counters);
}

const struct counters_sum *counters_of(const struct counters *counters, const char *service)
{
	const struct service *found = *service_link(counters, service);

	return found ? &found->sum : NULL;
}

uint64_t counters_cpu_ns(const struct counters *counters)
{
	return counters->cpu_ns;
}
