/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/policy_match.h"

#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/periods.h"
#include "sampler/cmd/daemon/process_facts.h"
#include "sampler/inject/preload_library.h"
#include "sampler/intake/region_mapped.h"
#include "sampler/intake/region_offer.h"
#include "sampler/intake/target.h"
#include "sampler/intake/target_plan.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"
#include "sampler/write/interval.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which library */

static bool is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && strncmp(slash + 1, PRELOAD_LIBRARY_NAME, strlen(PRELOAD_LIBRARY_NAME)) == 0;
}

/* Finds the mapping at the beginning of the library's file: its name in /proc/PID/map_files. */
static bool find_mapping(pid_t pid, char name[64])
{
	char line[4352], path[4096];
	uint64_t start, end, offset;
	bool found = false;
	FILE *maps = proc_open_text(pid, "maps");

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		path[0] = '\0';
		if (!strstr(line, PRELOAD_LIBRARY_NAME))
			continue;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
		        &offset, path) != 4 ||
		    offset != 0 || !is_library(path))
			continue;
		snprintf(name, 64, "map_files/%" PRIx64 "-%" PRIx64, start, end);
		found = true;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void read_id(int fd, char id[CRASH_GUARD_LIBRARY_BYTES])
{
	const void *bytes;

	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	ssize_t length = elf ? dwelf_elf_gnu_build_id(elf, &bytes) : -1;
	for (ssize_t i = 0; i < length && 2 * i + 2 < CRASH_GUARD_LIBRARY_BYTES; i++)
		snprintf(id + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
	elf_end(elf);
}

/* The build id of the library that the process has mapped, in hexadecimal digits. "" if it has none that
 * we may read. The id that was found last is remembered, by file. */
static void read_library_id(pid_t pid, char id[CRASH_GUARD_LIBRARY_BYTES])
{
	static struct stat last;
	static char last_id[CRASH_GUARD_LIBRARY_BYTES];
	char name[64], path[PROC_PATH_BYTES];
	struct stat status;

	id[0] = '\0';
	if (!find_mapping(pid, name))
		return;
	int fd = regular_file_open(AT_FDCWD, proc_path(path, pid, name), 0, &status);
	if (fd < 0)
		return;
	if (last_id[0] && status.st_dev == last.st_dev && status.st_ino == last.st_ino &&
	    status.st_mtim.tv_sec == last.st_mtim.tv_sec && status.st_mtim.tv_nsec == last.st_mtim.tv_nsec) {
		memcpy(id, last_id, CRASH_GUARD_LIBRARY_BYTES);
	} else {
		read_id(fd, id);
		last = status;
		memcpy(last_id, id, CRASH_GUARD_LIBRARY_BYTES);
	}
	close(fd);
}

/* ---- the match */

static void describe(
    struct process_entry *entry, const struct process_facts *facts, const struct policy *policy)
{
	process_entry_set(&entry->exe, facts->exe);
	process_entry_set(&entry->comm, facts->comm);
	process_entry_set(&entry->container, facts->cgroup.container_id);
	process_entry_set(&entry->service, policy->service);
	entry->uid = facts->uid;
}

/* Does the process still execute the program of the entry? It may have executed another one while its
 * facts were read, perhaps as another user. */
static bool is_still(const struct process_entry *entry)
{
	const struct thread_birth now = thread_facts_birth(entry->pid);

	return thread_facts_same_birth(&now, &entry->identity);
}

struct policy_match *policy_match_make(struct daemon *d, struct process_entry *entry, bool has_library)
{
	struct policy_match *match = calloc(1, sizeof(*match));

	if (!match || process_facts_read(&match->facts, entry->pid) != 0 || !is_still(entry)) {
		free(match);
		return NULL;
	}
	match->facts.has_library = has_library;
	policy_decide(&match->policy, d->rules, &match->facts);
	describe(entry, &match->facts, &match->policy);
	return match;
}

bool policy_match_refuses(struct daemon *d, struct process_entry *entry, const struct policy_match *match)
{
	char library[CRASH_GUARD_LIBRARY_BYTES];

	if (match->policy.answer != POLICY_PROFILE)
		return process_entry_refuse(entry, "%s", match->policy.reason);
	read_library_id(entry->pid, library);
	process_entry_set(&entry->library, library);
	entry->uid = match->facts.uid;
	const struct crash_guard_denied *denied =
	    crash_guard_find(d->guard, match->facts.exe, library, match->facts.uid);
	return denied && process_entry_refuse(entry, "denied: %s", denied->reason);
}

static void fill_labels(char text[TARGET_LABELS_BYTES], struct daemon *d, const struct policy_match *match)
{
	struct labels labels = {0};

	text[0] = '\0';
	char *comment = policy_labels(&labels, &match->policy, &match->facts, d->core.output.host) == 0
	    ? labels_comment(&labels)
	    : NULL;
	if (comment && strlen(comment) < TARGET_LABELS_BYTES)
		strcpy(text, comment);
	free(comment);
	labels_fini(&labels);
}

void policy_match_plan(struct target_plan *plan, struct daemon *d, const struct policy_match *match)
{
	const struct rules_service *how = match->policy.how;

	plan->uid = match->facts.uid;
	plan->decided = d->policy_checks;
	_Static_assert(RULES_INTERVAL_NS_DEFAULT == INTERVAL_USUAL, "nobody asked for an interval");
	plan->interval_ns = how->interval_ns;
	plan->keep = how->keep;
	plan->samples_per_hour = how->samples_per_hour;
	plan->period_bytes = how->period_bytes;
	snprintf(plan->service, sizeof(plan->service), "%s", match->policy.service);
	process_facts_account(&match->facts, plan->account, sizeof(plan->account));
	snprintf(plan->owner, sizeof(plan->owner), "%s", match->policy.by_rule ? "" : plan->account);
	fill_labels(plan->labels, d, match);
}

uint64_t policy_match_account(void *context, pid_t pid)
{
	struct target_plan plan = {.account = ""};
	struct process_facts facts;

	(void)context;
	(void)process_facts_read_owner(&facts, pid);
	process_facts_account(&facts, plan.account, sizeof(plan.account));
	return target_account(&(struct target){.plan = &plan});
}

uint64_t policy_match_period(const struct daemon *d, const struct policy_match *match)
{
	const uint64_t period_bytes = match->policy.how->period_bytes;

	/* a rule with samples-per-hour has none; periods_tune() adjusts it later */
	return (period_bytes ? period_bytes : RULES_PERIOD_BYTES_DEFAULT) << d->load.raised;
}

/* ---- processes that are known already */

static struct program_run *run_of(const struct daemon *d, const struct process_entry *entry)
{
	return entry->state == PROCESS_PROFILED ? books_run_of_region(&d->core.heap.intake.books, entry->ino)
	                                        : NULL;
}

static void match_again(struct daemon *d, struct process_entry *entry, struct program_run *run)
{
	struct policy_match *match = policy_match_make(d, entry, true);

	if (!match || region_mapped_by(run->region, entry->pid) == REGION_MAPPED_NO) {
		free(match); /* the process is gone, or has executed a program without this region */
		return;
	}
	if (run->plan)
		run->plan->decided = d->policy_checks;
	if (policy_match_refuses(d, entry, match)) {
		region_offer_turn(run->region, false);
		entry->state = PROCESS_PROFILED; /* its books stay; entry->reason says why sampling is off */
	} else {
		if (run->plan)
			policy_match_plan(run->plan, d, match);
		process_entry_set(&entry->reason, NULL);
		region_offer_turn(run->region, !d->off.off);
	}
	free(match);
}

void policy_match_again(struct daemon *d, struct process_entry *entry)
{
	struct program_run *run = run_of(d, entry);

	if (run)
		match_again(d, entry, run);
}

/* For a program run whose first process has ended, the rules are asked about any process that is left. */
static void match_children_again(struct daemon *d)
{
	for (size_t i = 0; i < d->processes.count; i++) {
		struct program_run *run = run_of(d, d->processes.entries[i]);

		if (run && run->plan && run->plan->decided != d->policy_checks)
			match_again(d, d->processes.entries[i], run);
	}
}

void policy_match_all_again(struct daemon *d)
{
	d->policy_checks++;
	for (size_t i = 0; i < d->processes.count; i++) {
		struct process_entry *entry = d->processes.entries[i];
		struct program_run *run = run_of(d, entry);

		if (run && entry->first)
			match_again(d, entry, run);
		else if (!run && entry->state != PROCESS_NEW && entry->state != PROCESS_ATTACHING) {
			entry->state = PROCESS_NOT_YET;
			entry->looks = entry->looks ? entry->looks - 1 : 0;
		}
	}
	match_children_again(d);
	periods_scale(d);
	finder_hurry(d->finder);
}
