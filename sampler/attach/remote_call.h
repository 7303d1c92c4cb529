/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function called in a thread of another process, such that the thread finds its way back without us: we
 * may be killed at any instruction.
 *
 * Below the thread's stack, under the red zone, we build what the kernel builds when it delivers a signal,
 * and below that a list of return addresses:
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
 * The signal is one that is ignored, or by default does nothing. A thread that is traced stops before it is
 * delivered: so we learn that the function is done. We drop the signal, put everything back as it was and let
 * the thread go; then the kernel goes on even with those calls that rt_sigreturn would end (poll with a
 * timeout, nanosleep). If nobody traces the thread any more the kernel drops the signal, and "back" is next.
 *
 * In between each of our steps the thread is in a state from which it goes on by itself:
 *     the frames are written      it does not know of them
 *     the registers are set       function, "tell", "back"
 *     the mask is set             the same, with signals deferred, until "back" has the old mask
 *     ... the function runs ...
 *     vector state, mask are set  "back" sets the same
 *     the registers are set       as before the stop
 *
 * Signals whose handlers may leave by longjmp are deferred meanwhile. Those by which garbage collectors stop
 * threads are not: the collector may wait for us while it has stopped the thread whose lock we wait for. Nor
 * is glibc's own for setuid. A call of the thread's own that a handler would have ended is ended by it here
 * too, whether the handler runs meanwhile or when the signals are let in again.
 */
#ifndef SAMPLER_ATTACH_REMOTE_CALL_H
#define SAMPLER_ATTACH_REMOTE_CALL_H

#include "sampler/attach/address_space.h"
#include "sampler/attach/stopped_thread.h"

/* Addresses of the target's libc. */
struct remote_code {
	uint64_t sigreturn;                 /* mov $15, %rax; syscall */
	uint64_t system_call;               /* syscall; ret */
	uint64_t pop_rax, pop_rdi, pop_rsi; /* each with ret */
};

/* Returns 0 or -ENOENT. libc: its first mapping. */
int remote_code_find(struct remote_code *code, const struct address_space *space, const struct mapping *libc);

struct remote_call {
	const struct address_space *space;
	const struct remote_code *code;
	uint64_t function;
	const char *text; /* first argument, copied to the stack; NULL: it is `first` */
	uint64_t first, second;
};

/* Bytes of stack that the frames take, at most; the function needs room besides. */
enum { REMOTE_CALL_FRAME_BYTES = 16 << 10 };

/*
 * Calls the function in a thread that is stopped at a safe point, waits until it has returned, puts
 * everything back and lets the thread go. Returns 0; -EAGAIN: not begun, and the thread runs on; -ESRCH: the
 * thread has ended; -ETIMEDOUT, or -ECANCELED because thread->cancel_fd became readable: the function has not
 * returned yet; it runs on, and so will the thread.
 */
int remote_call_run(const struct remote_call *call, struct stopped_thread *thread, uint64_t limit_ns);

/* Lets a thread go that was stopped and not called: a system call that the stop has ended goes on if that can
 * be. */
void remote_call_decline(struct stopped_thread *thread);

/* Is the thread in a system call that the kernel does not make again after a stop, whatever we do? Its
 * program would see EINTR, or that a part was done. number and arguments as in /proc/PID/syscall. Pure. */
bool remote_call_ends_call(uint64_t number, const uint64_t arguments[6]);

/* The descriptor that the call waits for, if the kernel would not make it again in case that is a socket with
 * a time limit (SO_RCVTIMEO, SO_SNDTIMEO); else -1. Pure. */
int remote_call_socket(uint64_t number, const uint64_t arguments[6]);

#endif
