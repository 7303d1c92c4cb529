/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all -pthread */
/*
 * Programs in a sandbox that kills the process at the first system call that is not on its list.
 *
 *   capture_seccomp plain|inside       no sandbox of its own: allocates, says `truth PID OBJECTS BYTES
 *                                      INUSE_BYTES`
 *   capture_seccomp later              allocates, enters a sandbox of seven calls, allocates again
 *   capture_seccomp fork               the same, and forks in there; the child allocates too
 *   capture_seccomp lock               as later; mlockall is allowed too, and called
 *   capture_seccomp limit              as later, with another thread; setrlimit is allowed too, and called
 *   capture_seccomp exec COMMAND...    executes COMMAND under a sandbox of what the loader itself calls
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#define NAMED __attribute__((noinline, noclone))
static long objects, bytes, inuse;

NAMED void *take(size_t size)
{
	void *block = malloc(size);

	if (!block)
		abort();
	memset(block, 0x77, size);
	objects++;
	bytes += (long)size;
	inuse += (long)size;
	return block;
}

static void churn(int count)
{
	for (int i = 0; i < count; i++) {
		size_t size = 100 + (size_t)(i * 7919 % 3000);
		void *gone = take(size), *kept = take(size);

		free(gone);
		inuse -= (long)size;
		(void)kept;
	}
	free(take(1 << 20)); /* by mmap and munmap */
	inuse -= 1 << 20;
}

static void report(int pid)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "truth %d %ld %ld %ld\n", pid, objects, bytes, inuse);

	if (write(1, text, (size_t)length) != length)
		_exit(3);
}

static void enter(const int *allowed, size_t count)
{
	struct sock_filter filter[64];
	size_t n = 0;

	filter[n++] =
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++) {
		filter[n++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = {(unsigned short)n, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(4);
}

static const int for_life[] = {SYS_read, SYS_write, SYS_exit_group, SYS_brk, SYS_mmap, SYS_munmap,
    SYS_rt_sigreturn,
    /* and to fork, for those who may: */
    SYS_clone, SYS_wait4, SYS_set_robust_list};

static const int for_locking[] = {
    SYS_read, SYS_write, SYS_exit_group, SYS_brk, SYS_mmap, SYS_munmap, SYS_rt_sigreturn, SYS_mlockall};

static const int for_limiting[] = {
    SYS_read, SYS_write, SYS_exit_group, SYS_brk, SYS_mmap, SYS_munmap, SYS_rt_sigreturn, SYS_prlimit64};

static void *stay(void *argument)
{
	(void)argument;
	for (;;)
		pause();
}

/* There is room for what heaptap has mapped, but it takes more of that than it may. */
static void limit_memory(void)
{
	const struct rlimit limit = {1536ul << 20, 1536ul << 20};
	pthread_t thread;

	if (pthread_create(&thread, NULL, stay, NULL) != 0)
		_exit(8);
	enter(for_limiting, sizeof(for_limiting) / sizeof(*for_limiting));
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		_exit(9);
}

/* Of two calls that ask for a file's owner, the one that this version's loader makes. */
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33) && !__GLIBC_PREREQ(2, 39)
#define SYS_FACTS SYS_newfstatat
#else
#define SYS_FACTS SYS_fstat
#endif

static const int for_loading[] = {SYS_execve, SYS_openat, SYS_read, SYS_mmap, SYS_close, SYS_FACTS,
    SYS_mprotect, SYS_munmap, SYS_pread64, SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_prlimit64,
    SYS_getrandom, SYS_brk, SYS_write, SYS_exit_group,
#if defined(__x86_64__)
    SYS_arch_prctl, SYS_access};
#else
    SYS_faccessat};
#endif

int main(int argc, char *argv[])
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "exec") == 0) {
		enter(for_loading, sizeof(for_loading) / sizeof(*for_loading));
		execv(argv[2], argv + 2);
		_exit(5);
	}
	/* may not be asked for inside */
	int pid = strcmp(mode, "inside") == 0 ? 0 : (int)syscall(SYS_getpid);
	churn(100);
	if (strcmp(mode, "later") == 0)
		enter(for_life, 7);
	if (strcmp(mode, "fork") == 0)
		enter(for_life, 10);
	if (strcmp(mode, "lock") == 0) {
		enter(for_locking, sizeof(for_locking) / sizeof(*for_locking));
		mlockall(MCL_CURRENT); /* may fail */
		mlockall(MCL_CURRENT | MCL_FUTURE);
	}
	if (strcmp(mode, "limit") == 0)
		limit_memory();
	churn(200);
	if (strcmp(mode, "fork") == 0) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			churn(100);
			_exit(0);
		}
		if (syscall(SYS_wait4, child, &status, 0, NULL) != child || status != 0) {
			if (write(2, "the child died\n", 15) < 0)
				_exit(7);
			_exit(6);
		}
		churn(100);
	}
	report(pid);
	_exit(0);
}
