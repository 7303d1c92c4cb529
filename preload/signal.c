/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/signal.h"

#include "preload/claim.h"
#include "preload/lookup.h"
#include "preload/request.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef void handler_fn(int);
typedef handler_fn *set_handler_fn(int number, handler_fn *handler);

/* Some of these are declared only by old headers, or by none. */
int __sigaction(int number, const struct sigaction *action, struct sigaction *old);
handler_fn *bsd_signal(int number, handler_fn *handler);
handler_fn *ssignal(int number, handler_fn *handler);
handler_fn *sysv_signal(int number, handler_fn *handler);
handler_fn *__sysv_signal(int number, handler_fn *handler);
handler_fn *sigset(int number, handler_fn *handler);

enum { SIGACTION, SIGNAL, BSD_SIGNAL, SSIGNAL, SYSV_SIGNAL, SYSV_SIGNAL_INNER, SIGSET, FUNCTIONS };

static struct lookup next[FUNCTIONS] = {
    {.name = "sigaction"},
    {.name = "signal"},
    {.name = "bsd_signal"},
    {.name = "ssignal"},
    {.name = "sysv_signal"},
    {.name = "__sysv_signal"},
    {.name = "sigset"},
};
static _Atomic uint32_t known;

/* Another library's constructor may call this before ours runs; two threads that race here store the same
 * pointers. */
static void *next_of(int function)
{
	if (!atomic_load_explicit(&known, memory_order_acquire)) {
		struct lookup found[FUNCTIONS];

		memcpy(found, next, sizeof(found));
		lookup_next(found, FUNCTIONS);
		memcpy(next, found, sizeof(found));
		atomic_store_explicit(&known, 1, memory_order_release);
	}
	return next[function].found;
}

void signal_prepare(void)
{
	(void)next_of(SIGACTION);
}

static int next_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	int (*function)(int, const struct sigaction *, struct sigaction *) =
	    (int (*)(int, const struct sigaction *, struct sigaction *))(uintptr_t)next_of(SIGACTION);

	if (function)
		return function(number, action, old);
	errno = ENOSYS;
	return -1;
}

static bool everywhere; /* forked children are asked for snapshots too */

/* Whether the snapshot is to be of this process, which has a place then. */
static bool is_ours(void)
{
	if (everywhere)
		return claim_ready();
	/* A forked child has not claimed a place yet, or has one of its own, or found none. */
	return claim_state() == CLAIM_OPEN && place_index() == 0;
}

/* A signal that the program sends to itself, or that a timer of its own sends, is meant to end it. */
static bool is_from_outside(const siginfo_t *info, uint32_t own_pid)
{
	if (info->si_code != SI_USER && info->si_code != SI_QUEUE && info->si_code != SI_TKILL)
		return false;
	return (uint32_t)info->si_pid != own_pid;
}

static _Atomic uint32_t left_pid; /* of the process that has left its region; 0: none has */

void signal_leave(void)
{
	atomic_store(&left_pid, is_ours() ? place_self()->pid : 0);
}

/* Not in a child that was forked since. */
static bool is_left(const siginfo_t *info)
{
	const uint32_t pid = atomic_load(&left_pid);

	return pid && is_from_outside(info, pid) && (uint32_t)syscall(SYS_getpid) == pid;
}

/* As the default does: the signal is blocked while its handler runs, and is delivered when that returns. The
 * system calls punish nobody who is not about to die anyway. */
static void end_process(int number)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	if (next_sigaction(number, &action, NULL) == 0)
		syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (everywhere && claim_state() == CLAIM_CLAIMING) {
		request_postpone();
		if (claim_state() == CLAIM_OPEN) /* meanwhile, by another thread */
			request_resume(place_header(), place_self());
		return;
	}
	bool ours = is_ours();
	if (ours && is_from_outside(info, place_self()->pid))
		request_signalled(place_header(), place_self());
	else if (!ours && is_left(info))
		; /* nobody would answer */
	else if (ours || !everywhere)
		end_process(number);
	errno = saved;
}

void signal_open(int number, bool in_children)
{
	struct sigaction action;

	if (next_sigaction(number, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
		return;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_signal;
	/* On the program's signal stack if it has one: its own stack may be a coroutine's, with no room to
	 * spare. */
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	everywhere = in_children;
	next_sigaction(number, &action, NULL);
}

/* ---- what the program is told */

static int any_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	int result = next_sigaction(number, action, old);

	if (result == 0 && old && old->sa_sigaction == on_signal)
		memset(old, 0, sizeof(*old)); /* as after an exec: SIG_DFL, no flags, an empty mask */
	return result;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	return any_sigaction(number, action, old);
}

EXPORT int __sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	return any_sigaction(number, action, old);
}

static handler_fn *any_signal(int function, int number, handler_fn *handler)
{
	set_handler_fn *set = (set_handler_fn *)(uintptr_t)next_of(function);

	if (!set) {
		errno = ENOSYS;
		return SIG_ERR;
	}
	handler_fn *old = set(number, handler);
	return (uintptr_t)old == (uintptr_t)on_signal ? SIG_DFL : old;
}

EXPORT handler_fn *signal(int number, handler_fn *handler)
{
	return any_signal(SIGNAL, number, handler);
}

EXPORT handler_fn *bsd_signal(int number, handler_fn *handler)
{
	return any_signal(BSD_SIGNAL, number, handler);
}

EXPORT handler_fn *ssignal(int number, handler_fn *handler)
{
	return any_signal(SSIGNAL, number, handler);
}

EXPORT handler_fn *sysv_signal(int number, handler_fn *handler)
{
	return any_signal(SYSV_SIGNAL, number, handler);
}

EXPORT handler_fn *__sysv_signal(int number, handler_fn *handler)
{
	return any_signal(SYSV_SIGNAL_INNER, number, handler);
}

EXPORT handler_fn *sigset(int number, handler_fn *handler)
{
	return any_signal(SIGSET, number, handler);
}
