/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/verdict.h"

#include "sampler/daemon/daemon_state.h"
#include "sampler/daemon/library_id.h"
#include "sampler/identity/process_labels.h"
#include "sampler/snapshot/schedule.h"
#include "sampler/target/target.h"
#include "sampler/target/target_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool verdict_refuse(struct roster_entry *entry, const char *format, ...)
{
	char text[DECISION_REASON_BYTES + 256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	roster_set(&entry->reason, text);
	entry->state = ROSTER_REFUSED;
	return true;
}

static void describe(
    struct roster_entry *entry, const struct process_facts *facts, const struct decision *decision)
{
	roster_set(&entry->exe, facts->exe);
	roster_set(&entry->comm, facts->comm);
	roster_set(&entry->container, facts->cgroup.container_id);
	roster_set(&entry->service, decision->service);
	entry->uid = facts->uid;
}

/* What was read is of the program that we have looked at: it may have executed another meanwhile, perhaps one
 * that runs as another user. */
static bool is_still(const struct roster_entry *entry)
{
	const struct thread_birth now = thread_facts_birth(entry->pid);

	return thread_facts_same_birth(&now, &entry->identity);
}

struct verdict *verdict_make(struct daemon *d, struct roster_entry *entry, bool has_library)
{
	struct verdict *verdict = calloc(1, sizeof(*verdict));

	if (!verdict || process_facts_read(&verdict->facts, entry->pid) != 0 || !is_still(entry)) {
		free(verdict);
		return NULL;
	}
	verdict->facts.has_library = has_library;
	decision_make(&verdict->decision, d->rules, &verdict->facts);
	describe(entry, &verdict->facts, &verdict->decision);
	return verdict;
}

bool verdict_is_no(struct daemon *d, struct roster_entry *entry, const struct verdict *verdict)
{
	char library[CRASH_GUARD_LIBRARY_BYTES];

	if (verdict->decision.verdict != DECISION_PROFILE)
		return verdict_refuse(entry, "%s", verdict->decision.reason);
	library_id_read(entry->pid, library);
	roster_set(&entry->library, library);
	entry->uid = verdict->facts.uid;
	const struct crash_guard_denied *denied =
	    crash_guard_find(d->guard, verdict->facts.exe, library, verdict->facts.uid);
	return denied && verdict_refuse(entry, "denied: %s", denied->reason);
}

static void fill_labels(char text[TARGET_LABELS_BYTES], struct daemon *d, const struct verdict *verdict)
{
	struct labels labels = {0};

	text[0] = '\0';
	char *comment =
	    decision_labels(&labels, &verdict->decision, &verdict->facts, d->core.output.host) == 0
	    ? labels_comment(&labels)
	    : NULL;
	if (comment && strlen(comment) < TARGET_LABELS_BYTES)
		strcpy(text, comment);
	free(comment);
	labels_fini(&labels);
}

void verdict_plan(struct target_plan *plan, struct daemon *d, const struct verdict *verdict)
{
	const struct rules_service *how = verdict->decision.how;

	plan->uid = verdict->facts.uid;
	plan->decided = d->decisions;
	_Static_assert(RULES_INTERVAL_NS_DEFAULT == SCHEDULE_USUAL, "nobody asked for an interval");
	plan->interval_ns = how->interval_ns;
	plan->keep = how->keep;
	plan->samples_per_hour = how->samples_per_hour;
	plan->period_bytes = how->period_bytes;
	snprintf(plan->service, sizeof(plan->service), "%s", verdict->decision.service);
	process_labels_owner(&verdict->facts, plan->account, sizeof(plan->account));
	snprintf(plan->owner, sizeof(plan->owner), "%s", verdict->decision.by_rule ? "" : plan->account);
	fill_labels(plan->labels, d, verdict);
}

uint64_t verdict_account(void *context, pid_t pid)
{
	struct target_plan plan = {.account = ""};
	struct process_facts facts;

	(void)context;
	(void)process_facts_read_owner(&facts, pid);
	process_labels_owner(&facts, plan.account, sizeof(plan.account));
	return target_account(&(struct target){.plan = &plan});
}

uint64_t verdict_period(const struct daemon *d, const struct verdict *verdict)
{
	const uint64_t period_bytes = verdict->decision.how->period_bytes;

	/* that of samples-per-hour is adjusted later */
	return (period_bytes ? period_bytes : RULES_PERIOD_BYTES_DEFAULT) << d->load.raised;
}
