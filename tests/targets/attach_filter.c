/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose threads install a filter that ends the process at openat, soon after they have begun. Its
 * main thread is on an alternate stack, so only the others can be called. Prints "ready"; ends at the end of
 * its input.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

enum { THREADS = 4, SPINS = 400 * 1000, STACK_BYTES = 512 << 10 };

static struct sock_filter instructions[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static const struct sock_fprog filter = {sizeof(instructions) / sizeof(*instructions), instructions};

static void *close_door(void *spins)
{
	for (volatile size_t i = 0; i < (size_t)spins; i++)
		;
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	poll(NULL, 0, 3);
	return NULL;
}

static void work(int number)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	(void)number;
	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		pthread_t threads[THREADS];

		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, close_door, (void *)(size_t)(random() % SPINS));
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	_exit(0);
}

int main(void)
{
	static char stack[STACK_BYTES];
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	const struct sigaction action = {.sa_handler = work, .sa_flags = SA_ONSTACK};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	return 0;
}
