/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/policy.h"

#include "pprof/text/pattern.h"
#include "sampler/cmd/daemon/crash_guard.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/finder.h"
#include "sampler/cmd/daemon/periods.h"
#include "sampler/cmd/daemon/process_facts.h"
#include "sampler/intake/region_mapped.h"
#include "sampler/intake/region_offer.h"
#include "sampler/intake/target.h"
#include "sampler/intake/target_plan.h"
#include "sampler/write/interval.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the built-in deny list */

struct group {
	const char *what;
	const char *const *globs;
};

static const char *const systemd[] = {"systemd", "systemd-*", "(sd-*", "init", NULL};
static const char *const logins[] = {"sshd", "sshd-*", "login", "su", "sudo", "sudo-rs", "su-rs", "doas",
    "pkexec", "polkitd", "agetty", "getty", "newgrp", "runuser", "setpriv", "unix_chkpwd", NULL};
static const char *const buses[] = {"dbus-daemon", "dbus-broker", "dbus-broker-*", "dbus-launch", NULL};
static const char *const runtimes[] = {"containerd", "containerd-*", "dockerd", "docker", "docker-*", "runc",
    "runc:*", "crun", "youki", "runsc", "kata-*", "conmon", "conmonrs", "podman", "crio", "cri-o", "pinns",
    "nerdctl", "buildkitd", "buildah", "skopeo", "rootlesskit", "slirp4netns", "pasta", "passt",
    "fuse-overlayfs", "bwrap", "lxc-*", "lxcfs", "lxd", "incusd", NULL};
static const char *const kubelets[] = {"kubelet", "kube-proxy", "k3s", "k3s-*", "rke2", "rke2-*", NULL};
static const char *const packages[] = {"apt", "apt-*", "apt.systemd.dai*", "aptitude", "dpkg", "dpkg-*",
    "unattended-upgr*", "rpm", "rpmdb", "dnf", "dnf5", "dnf-*", "microdnf", "yum", "zypper", "pacman", "apk",
    "snap", "snapd", "snap-*", "flatpak", "packagekitd", "needrestart", "debconf*", NULL};
static const char *const ours[] = {"heaptap", "heaptap-*", "heaptapd", NULL};
static const char *const loaders[] = {
    "ld.so", "ld-linux*", "ld-musl-*", "ld-2.*", "ldconfig", "ldconfig.real", NULL};

static const struct group groups[] = {
    {"systemd or init", systemd},
    {"logins and changes of users", logins},
    {"D-Bus", buses},
    {"container runtimes", runtimes},
    {"the kubelet", kubelets},
    {"package managers", packages},
    {"heaptap itself", ours},
    {"the dynamic loader", loaders},
};

const char *policy_never(const struct process_facts *facts)
{
	if (facts->pid == 1)
		return "pid 1";
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (const char *const *glob = groups[i].globs; *glob; glob++)
			if (pattern_glob_matches(*glob, process_facts_program(facts)) ||
			    pattern_glob_matches(*glob, facts->comm))
				return groups[i].what;
	return NULL;
}

#include "sampler/cmd/daemon/policy.h"

#include "sampler/cmd/daemon/process_facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the rules */

enum { TEXTS = 3 };

/* The texts of a fact. A glob must match one of them. Unused texts are NULL. */
static void texts_of(
    const struct process_facts *facts, enum rules_fact fact, const char *texts[TEXTS], char number[24])
{
	texts[0] = texts[1] = texts[2] = NULL;
	switch (fact) {
	case RULES_EXE:
		texts[0] = facts->exe;
		break;
	case RULES_COMM:
		texts[0] = facts->comm;
		break;
	case RULES_UNIT:
		texts[0] = facts->cgroup.unit;
		break;
	case RULES_CGROUP:
		texts[0] = facts->cgroup.path;
		break;
	case RULES_CONTAINER:
		texts[0] = facts->cgroup.container_id;
		texts[1] = facts->declared.container;
		break;
	case RULES_USER:
		snprintf(number, 24, "%u", (unsigned int)facts->uid);
		texts[0] = facts->user;
		texts[1] = number;
		break;
	case RULES_FACTS:
		break;
	}
}

/* The glob that matches the fact, or NULL. A fact that is unknown or empty matches no glob, not even `*`. */
static const char *glob_find(
    const struct rules_globs *globs, const struct process_facts *facts, enum rules_fact fact)
{
	const char *texts[TEXTS];
	char number[24];

	texts_of(facts, fact, texts, number);
	for (size_t i = 0; i < globs->count; i++)
		for (int j = 0; j < TEXTS && texts[j]; j++)
			if (*texts[j] && pattern_glob_matches(globs->globs[i], texts[j]))
				return globs->globs[i];
	return NULL;
}

static bool matches(const struct rules_service *service, const struct process_facts *facts)
{
	for (int i = 0; i < RULES_FACTS; i++)
		if (service->match[i].count && !glob_find(&service->match[i], facts, (enum rules_fact)i))
			return false;
	return true;
}

__attribute__((format(printf, 3, 4))) static void leave(
    struct policy *policy, enum policy_answer answer, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(policy->reason, sizeof(policy->reason), format, arguments);
	va_end(arguments);
	policy->answer = answer;
}

static bool is_denied(struct policy *policy, const struct rules *rules, const struct process_facts *facts)
{
	const char *built_in = policy_never(facts);

	if (facts->declared.disabled)
		leave(policy, POLICY_DISABLED, "HEAPTAP_DISABLE is set in its environment");
	else if (built_in)
		leave(policy, POLICY_BUILT_IN, "never profiled: %s", built_in);
	for (int i = 0; i < RULES_FACTS && policy->answer == POLICY_PROFILE; i++) {
		const char *glob = glob_find(&rules->deny[i], facts, (enum rules_fact)i);

		if (glob)
			leave(policy, POLICY_DENIED, "denied by the configuration: %s = %.400s",
			    rules_fact_name((enum rules_fact)i), glob);
	}
	return policy->answer != POLICY_PROFILE;
}

static void name_service(
    struct policy *policy, const struct rules_service *rule, const struct process_facts *facts)
{
	if (rule)
		snprintf(policy->service_name, sizeof(policy->service_name), "%s", rule->title);
	else
		process_facts_service(facts, policy->service_name, sizeof(policy->service_name));
	service_name_clean(policy->service_name, policy->service);
}

void policy_decide(struct policy *policy, const struct rules *rules, const struct process_facts *facts)
{
	const struct rules_service *rule = NULL;

	memset(policy, 0, sizeof(*policy));
	for (size_t i = 0; i < rules->service_count && !rule; i++)
		if (matches(&rules->services[i], facts))
			rule = &rules->services[i];
	policy->how = rule ? rule : &rules->defaults;
	policy->by_rule = rule != NULL;
	name_service(policy, rule, facts);
	if (is_denied(policy, rules, facts))
		return;
	if (!policy->how->profile && rule)
		leave(policy, POLICY_NOT_WANTED, "profile = no in [service %s]", rule->title);
	else if (!policy->how->profile)
		leave(policy, POLICY_NOT_WANTED,
		    "no [service NAME] matches it, and [service] says profile = no");
	else if (!facts->has_library && !rule)
		leave(policy, POLICY_NO_LIBRARY,
		    "it does not carry the library, and no [service NAME] matches it");
	else if (!facts->has_library && !rule->attach)
		leave(policy, POLICY_NO_LIBRARY,
		    "it does not carry the library, and [service %s] has no attach = yes", rule->title);
}

int policy_labels(
    struct labels *labels, const struct policy *policy, const struct process_facts *facts, const char *host)
{
	return process_facts_labels(labels, facts, policy->service_name, host, &policy->how->labels);
}

/* ---- the match of one process and the rules */

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
	crash_guard_library(entry->pid, library);
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
