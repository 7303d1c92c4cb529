/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/deny_list.h"

#include "pprof/text/glob.h"
#include "sampler/cmd/daemon/process_facts.h"

#include <stddef.h>

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

const char *deny_list_find(const struct process_facts *facts)
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
