/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a function in a thread of another process. The thread finds its way back without us: we may be killed
 * at any instruction.
 *
 * Below the thread's stack and its red zone we build the frame that the kernel builds to deliver a signal,
 * and below the frame a list of return addresses:
 *
 *     thread's stack pointer --->  (what the thread had)
 *                                  128 bytes red zone
 *                                  vector state
 *     frame "back"                 rt_sigreturn(2): all registers and the signal mask of before; a system
 *     call
 *                                  that was interrupted is made again
 *     list "tell"                  pop rax, rdi, rsi; syscall: tkill, a signal to this very thread
 *     function's stack pointer ->  (its return address is the first of the list)
 *
 * The process ignores the signal, or its default action is nothing. A traced thread stops before the signal
 * is delivered: so we learn that the function has returned. We drop the signal, put everything back and let
 * the thread go. The kernel then even resumes the calls that rt_sigreturn would end (poll with a timeout,
 * nanosleep). If nobody traces the thread any more, the kernel drops the signal, and "back" is next.
 *
 * Between any two of our steps the thread is in a state from which it goes on by itself:
 *     the frames are written      it does not know of them
 *     the registers are set       function, "tell", "back"
 *     the mask is set             the same, with signals deferred, until "back" has the old mask
 *     ... the function runs ...
 *     vector state, mask are set  "back" sets the same
 *     the registers are set       as before the stop
 *
 * Signals are deferred meanwhile, because their handlers may leave by longjmp. Not deferred are the signals
 * by which garbage collectors stop threads: a collector may wait for us while it has stopped the thread whose
 * lock we wait for. Neither is glibc's own signal for setuid. If a handler would have ended the thread's own
 * system call, it ends the call here, too, whether the handler runs meanwhile or when the signals are let in
 * again.
 */
#ifndef SAMPLER_INJECT_REMOTE_CALL_H
#define SAMPLER_INJECT_REMOTE_CALL_H

#include "sampler/inject/address_space.h"
#include "sampler/inject/stopped_thread.h"

/* Addresses of the target's libc. */
struct remote_code {
	uint64_t sigreturn;                 /* mov $15, %rax; syscall */
	uint64_t system_call;               /* syscall; ret */
	uint64_t pop_rax, pop_rdi, pop_rsi; /* each with ret */
};

/* libc: its first mapping. Returns 0 or -ENOENT. */
int remote_code_find(struct remote_code *code, const struct address_space *space, const struct mapping *libc);

struct remote_call {
	const struct address_space *space;
	const struct remote_code *code;
	uint64_t function;
	const char *text; /* first argument, copied to the stack; NULL: it is `first` */
	uint64_t first, second;
};

/* The most bytes of stack that the frames take. The function needs more. */
enum { REMOTE_CALL_FRAME_BYTES = 16 << 10 };

/*
 * Calls the function in a thread that is stopped at a safe point, waits until the function has returned, puts
 * everything back and lets the thread go. Returns 0; -EAGAIN if the call was not begun and the thread runs
 * on; -ESRCH if the thread has ended. -ETIMEDOUT, or -ECANCELED if thread->cancel_fd became readable: the
 * function has not returned yet; it runs on, and so will the thread.
 */
int remote_call_run(const struct remote_call *call, struct stopped_thread *thread, uint64_t limit_ns);

/* Lets a thread go that was stopped and is not to be used. A system call that the stop has ended goes on if
 * possible. */
void remote_call_decline(struct stopped_thread *thread);

/* Would a stop end this system call for good? The program would see EINTR, or a call that was done in part.
 * number and arguments: as in /proc/PID/syscall. Pure. */
bool remote_call_ends_call(uint64_t number, const uint64_t arguments[6]);

/* The descriptor that the call waits for, if a stop would end the call for good should the descriptor be a
 * socket with a time limit (SO_RCVTIMEO, SO_SNDTIMEO); else -1. Pure. */
int remote_call_socket(uint64_t number, const uint64_t arguments[6]);

#endif
