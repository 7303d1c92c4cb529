/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/confinement.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* ---- descriptors */

enum { NUMBERS_MAX = 1 << 20 };

static void close_each(unsigned int first, unsigned int last)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	struct rlimit limit;

	if (!folder) { /* no /proc: closes every number that may be open */
		if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > NUMBERS_MAX)
			limit.rlim_cur = NUMBERS_MAX;
		for (unsigned int fd = first; fd <= last && fd < limit.rlim_cur; fd++)
			close((int)fd);
		return;
	}
	while ((entry = readdir(folder))) {
		char *end;
		unsigned long fd = strtoul(entry->d_name, &end, 10);

		if (end != entry->d_name && fd >= first && fd <= last && (int)fd != dirfd(folder))
			close((int)fd);
	}
	closedir(folder);
}

void confinement_close_range(unsigned int first, unsigned int last)
{
	if (close_range(first, last, 0) != 0)
		close_each(first, last);
}

/* ---- the process that enters */

enum { NOBODY = 65534 }; /* the kernel's overflow user and group; no name is looked up */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void close_others(unsigned int one, unsigned int other)
{
	unsigned int low = one < other ? one : other, high = one < other ? other : one;

	if (low > 0)
		confinement_close_range(0, low - 1);
	if (high > low + 1)
		confinement_close_range(low + 1, high - 1);
	confinement_close_range(high + 1, UINT_MAX);
}

/* Replaces shared memory by private zeros. It is not unmapped: a preloaded library, also ours, may still use
 * it. Only if the kernel has no memory to give, it is unmapped. */
static int replace_shared(void *start, size_t bytes)
{
	const int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

	return mmap(start, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == start || munmap(start, bytes) == 0
	    ? 0
	    : -errno;
}

/* A forked child has all shared memory, writable: regions of targets, rings, counters that a daemon's
 * children share. */
static int leave_shared(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t capacity = 0;
	int err = maps ? 0 : -errno;

	while (!err && getline(&line, &capacity, maps) > 0) {
		uintptr_t start, end;
		char mode[5];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, mode) == 3 && mode[3] == 's')
			err = replace_shared((void *)start, end - start); // NOLINT
	}
	free(line);
	if (maps)
		fclose(maps);
	return err;
}

static void set_limit(int resource, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0)
		return;
	limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
}

/* In a user namespace the user nobody may have no number. Then root without capabilities must do. */
static int drop_user(void)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) != 0 && errno != EPERM)
		return -errno;
	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 && errno != EINVAL)
		return -errno;
	if (setresuid(NOBODY, NOBODY, NOBODY) != 0 && errno != EINVAL)
		return -errno;
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {{0}};

	return syscall(SYS_capset, &header, none) == 0 ? 0 : -errno;
}

#ifdef __x86_64__
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

static bool traps_opens;

/* A kernel without filters is no reason to read no symbols. */
static int install(const struct sock_fprog *program)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0 && errno != EINVAL &&
	    errno != ENOSYS)
		return -errno;
	return 0;
}

/* We keep the table ourselves: libseccomp would compile it anew in each of the many short-lived children. */
static int install_filter(void)
{
	static const uint16_t allowed[] = {SYS_read, SYS_pread64, SYS_write, SYS_sendmsg, SYS_recvmsg,
	    SYS_sendto, SYS_recvfrom, SYS_lseek, SYS_close, SYS_dup, SYS_fstat, SYS_newfstatat, SYS_brk,
	    SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, SYS_getrandom, SYS_clock_gettime,
	    SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall, SYS_exit, SYS_exit_group};
	static const uint16_t without_code[] = {SYS_mmap, SYS_mprotect}; /* argument 2 has PROT_EXEC */
	enum {
		PLAIN = sizeof(allowed) / sizeof(allowed[0]),
		CODE = sizeof(without_code) / sizeof(without_code[0])
	};
	struct sock_filter code[PLAIN + CODE + 8];
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	/* The last four instructions: load the argument, test it, refuse, allow. */
	const unsigned int argument = PLAIN + CODE + 4, refuse = argument + 2, allow = argument + 3;
	unsigned int at = 0;

	code[at++] =
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	code[at] =
	    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 0, (uint8_t)(refuse - at - 1));
	at++;
	code[at++] =
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned int i = 0; i < PLAIN; i++, at++)
		code[at] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (uint8_t)(allow - at - 1), 0);
	for (unsigned int i = 0; i < CODE; i++, at++)
		code[at] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, without_code[i], (uint8_t)(argument - at - 1), 0);
	code[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, refuse - at - 1, 0, 0);
	at++;
	code[at++] =
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
	code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return install(&program);
}

/* A filter of its own: of several answers the kernel takes the trap before a refusal. */
static int install_trap(void)
{
	static const struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
	    .len = sizeof(code) / sizeof(code[0]), .filter = (struct sock_filter *)code};

	return install(&program);
}

bool confinement_trap_opens(void)
{
	traps_opens = !SANITIZED && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
	return traps_opens;
}

int confinement_filter_calls(void)
{
	const int err = traps_opens ? install_trap() : 0;

	return err || SANITIZED ? err : install_filter();
}

int confinement_enter(int one, int other, unsigned int cpu_seconds)
{
	int err = leave_shared();

	close_others((unsigned int)one, (unsigned int)other);
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_CPU, cpu_seconds);
	if (!err)
		err = drop_user();
	if (!err)
		err = drop_capabilities();
	set_limit(RLIMIT_NPROC, 0);
	/* Not earlier, because each change of the user or the capabilities cancels the signal
	 * (commit_creds()). Not later, because the filter refuses the call. */
	if (!err &&
	    (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0 ||
	        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0))
		err = -errno;
	return err ? err : confinement_filter_calls();
}
