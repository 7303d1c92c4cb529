/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/policy.h"

#include "pprof/text/glob.h"
#include "sampler/cmd/daemon/process_facts.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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
			if (glob_matches(*glob, process_facts_program(facts)) ||
			    glob_matches(*glob, facts->comm))
				return groups[i].what;
	return NULL;
}

#include "sampler/cmd/daemon/policy.h"

#include "pprof/text/glob.h"
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
			if (*texts[j] && glob_matches(globs->globs[i], texts[j]))
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
