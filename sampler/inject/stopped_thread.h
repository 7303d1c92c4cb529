/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread of another process, stopped by ptrace(2); all others run on. If we are killed, the kernel lets
 * the thread run on with its registers as they are then. While the thread stands still, a timer runs: after
 * 0.4 s its SIGALRM ends this process, whatever we are doing then.
 */
#ifndef SAMPLER_INJECT_STOPPED_THREAD_H
#define SAMPLER_INJECT_STOPPED_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum { STOPPED_THREAD_VECTOR_BYTES = 16384 };

struct stopped_thread {
	pid_t tid;
	int cancel_fd; /* the wait for a stop ends when this is readable; -1: none */
	struct user_regs_struct registers;
	uint64_t signal_mask;
	unsigned char vector[STOPPED_THREAD_VECTOR_BYTES]; /* FPU and vector state, as XSAVE stores it */
	size_t vector_bytes;
	uint64_t sequences; /* the address of its struct rseq (linux/rseq.h); 0: none, or before Linux 5.13 */
	/* Its system calls become signals unless the byte at this address is zero (prctl(2),
	 * PR_SET_SYSCALL_USER_DISPATCH). UINT64_MAX: there is no such byte. 0: they do not, or the kernel
	 * does not tell (before Linux 6.4). */
	uint64_t dispatch;
	uint64_t since_ns; /* when we asked it to stop: it stands still since then at the earliest */
};

/* How a wait for a stop ended. */
enum stopped_thread_stop {
	STOPPED_THREAD_INTERRUPTED, /* by stopped_thread_interrupt */
	STOPPED_THREAD_SIGNAL,      /* before a signal is delivered: *signal */
	STOPPED_THREAD_GROUP,       /* the process is stopped by a signal */
	STOPPED_THREAD_ENDED,
	STOPPED_THREAD_TIMEOUT,
	STOPPED_THREAD_CANCELED,
};

/* Stops the thread. Returns 0; -EAGAIN if a signal has stopped it already; -ETIMEDOUT if it does not stop
 * within `limit_ns`; -ECANCELED; -ESRCH; or -EPERM. The thread runs on after every error. After -ETIMEDOUT
 * and -ECANCELED it may still come to its stop, as long as the calling thread lives. */
int stopped_thread_stop(struct stopped_thread *thread, pid_t tid, uint64_t limit_ns);

/* Lets the thread run on, with its registers as they are. */
void stopped_thread_release(struct stopped_thread *thread);

/* Fills in the struct. Returns 0 or -errno. */
int stopped_thread_read(struct stopped_thread *thread);

/* Its stack pointer; the number of its system call, or -1 if it is in none or that is unknown; and its
 * program counter. */
uint64_t stopped_thread_stack_pointer(const struct stopped_thread *thread);
int64_t stopped_thread_system_call(const struct stopped_thread *thread);
uint64_t stopped_thread_program_counter(const struct stopped_thread *thread);

/* Reads the word at an address of the thread's own memory. Returns 0 or -errno. */
int stopped_thread_peek(const struct stopped_thread *thread, uint64_t address, uint64_t *word);

/* Its thread pointer, the address of libc's descriptor of the thread, or 0 if unknown. */
uint64_t stopped_thread_pointer(const struct stopped_thread *thread);

/* Single ptrace(2) requests. Return 0 or -errno. */
int stopped_thread_set_registers(
    const struct stopped_thread *thread, const struct user_regs_struct *registers);
int stopped_thread_set_mask(const struct stopped_thread *thread, uint64_t mask);
int stopped_thread_set_vector(const struct stopped_thread *thread);
int stopped_thread_go(const struct stopped_thread *thread, int signal);
int stopped_thread_listen(const struct stopped_thread *thread);
int stopped_thread_interrupt(const struct stopped_thread *thread);

/* cancel_fd: as in struct stopped_thread. */
enum stopped_thread_stop stopped_thread_wait(pid_t tid, uint64_t limit_ns, int cancel_fd, int *signal);

enum { STOPPED_THREAD_MARK_BYTES = 4 };

/*
 * Turns the vector state that ptrace(2) gives for NT_X86_XSTATE (`area`) into the form that a signal frame
 * has (arch/x86/include/uapi/asm/sigcontext.h): the same XSAVE area with a description in its unused bytes
 * and a mark behind its end. `frame` has room for `bytes` and the mark. Returns the bytes of the frame, or 0
 * if the thread uses state that would not come back (AMX tiles). Pure.
 */
size_t stopped_thread_frame_vector(const unsigned char *area, size_t bytes, unsigned char *frame);

#endif
