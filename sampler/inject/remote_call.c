/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/remote_call.h"

#include "pprof/text/clock.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)

enum {
	RED_ZONE_BYTES = 128,
	TEXT_BYTES = 256,
	TELL_WORDS = 7,
	FRAME_FLAGS = 7,      /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
	STACK_REFUSED = 0x40, /* invalid ss_flags: so the alternate stack stays as it is */
	DIRECTION_FLAG = 0x400,
	TRAP_FLAG = 0x100,
	IO_URING_TIMEOUT = 8, /* IORING_ENTER_EXT_ARG */
	SIGNAL_CANCEL = 32,   /* glibc's, for pthread_cancel */

	/* include/linux/errno.h: seen only by the kernel and debuggers */
	RESTART_SYS = 512,
	RESTART_NO_INTERRUPT = 513,
	RESTART_NO_HANDLER = 514,
	RESTART_BLOCK = 516,
};

/* struct rt_sigframe of arch/x86, without the siginfo behind it, which rt_sigreturn does not read. */
struct frame {
	uint64_t restorer; /* return address */
	uint64_t flags, link, stack_pointer, stack_flags, stack_bytes;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, cr2, vector_state, reserved[8];
	uint64_t mask;
};
_Static_assert(sizeof(struct frame) == 8 + 304, "struct ucontext of the kernel");

int remote_code_find(struct remote_code *code, const struct address_space *space, const struct mapping *libc)
{
	const struct {
		uint64_t *address;
		size_t count;
		unsigned char bytes[9];
	} pieces[] = {
	    {&code->sigreturn, 9, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}},
	    {&code->system_call, 3, {0x0f, 0x05, 0xc3}},
	    {&code->pop_rax, 2, {0x58, 0xc3}},
	    {&code->pop_rdi, 2, {0x5f, 0xc3}},
	    {&code->pop_rsi, 2, {0x5e, 0xc3}},
	};
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		*pieces[i].address = address_space_search(space, libc, pieces[i].bytes, pieces[i].count);
		if (!*pieces[i].address)
			return -ENOENT;
	}
	return 0;
}

static uint64_t bit(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

static uint64_t deferred(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGTSTP,
	    SIGTTIN, SIGTTOU, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGNAL_CANCEL};
	uint64_t set = 0;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		set |= bit(signals[i]);
	return set;
}

/* A signal to which nothing in the process reacts; SIGURG if there is none. */
static int choose_signal(const char *status)
{
	static const int signals[] = {SIGURG, SIGWINCH, SIGCHLD};
	uint64_t caught = proc_status_number(status, "\nSigCgt:", 16, UINT64_MAX);

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!(caught & bit(signals[i])))
			return signals[i];
	return SIGURG;
}

/* The last number of a line is that of the innermost pid namespace. */
static long inner_id(const char *status, const char *label)
{
	const char *line = strstr(status, label);
	const char *end = line ? strchr(line + 1, '\n') : NULL, *last = end;

	while (last && last > line && last[-1] != '\t')
		last--;
	return last ? strtol(last, NULL, 10) : 0;
}

/* Sets the registers so that an interrupted system call is made again, if Linux would make it again. */
static void make_call_again(struct user_regs_struct *registers)
{
	int64_t result = (int64_t)registers->rax;

	if ((int64_t)registers->orig_rax < 0)
		return;
	if (result == -RESTART_SYS || result == -RESTART_NO_INTERRUPT || result == -RESTART_NO_HANDLER) {
		registers->rax = registers->orig_rax;
		registers->rip -= 2;
	} else if (result == -RESTART_BLOCK) {
		registers->rax = (uint64_t)-EINTR; /* the only thing that rt_sigreturn can bring about */
	}
	registers->orig_rax = UINT64_MAX;
}

/* Calls that end with EINTR at every stop. We can repeat those without a timeout. */
static bool is_endless(uint64_t number, const uint64_t arguments[6])
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int32_t)arguments[3] < 0;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return arguments[3] == 0;
	case SYS_rt_sigtimedwait:
		return arguments[2] == 0;
	case SYS_io_uring_enter: /* a repeated call would not submit its entries again */
		return !(arguments[3] & IO_URING_TIMEOUT) && arguments[1] == 0;
	case SYS_semop:
	case SYS_msgsnd:
	case SYS_msgrcv:
		return true;
	default:
		return false;
	}
}

bool remote_call_ends_call(uint64_t number, const uint64_t arguments[6])
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_uring_enter:
		return !is_endless(number, arguments);
	case SYS_io_getevents:
	case SYS_write: /* ends after a partial write */
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_vmsplice:
		return true;
	case SYS_recvfrom:
		return arguments[3] & MSG_WAITALL;
	case SYS_recvmsg:
		return arguments[2] & MSG_WAITALL;
	default:
		return false;
	}
}

int remote_call_socket(uint64_t number, const uint64_t arguments[6])
{
	switch (number) {
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
		return (int)arguments[0];
	default:
		return -1;
	}
}

/* Turns a call that our stop has ended into a call that the kernel repeats, unless a signal handler is to run
 * first. The kernel knows which signals have come meanwhile, as for the calls that it repeats by itself. */
static void make_ended_call_again(struct user_regs_struct *registers)
{
	const uint64_t arguments[6] = {
	    registers->rdi, registers->rsi, registers->rdx, registers->r10, registers->r8, registers->r9};

	if ((int64_t)registers->rax == -EINTR && (int64_t)registers->orig_rax >= 0 &&
	    is_endless(registers->orig_rax, arguments))
		registers->rax = (uint64_t)-RESTART_NO_HANDLER;
}

/* A handler ran while the function ran. It would have ended the thread's own system call, so that call ends
 * now. */
static void end_call(struct user_regs_struct *registers)
{
	const int64_t result = (int64_t)registers->rax;

	if ((int64_t)registers->orig_rax < 0 || (result != -RESTART_NO_HANDLER && result != -RESTART_BLOCK))
		return;
	registers->rax = (uint64_t)-EINTR;
	registers->orig_rax = UINT64_MAX;
}

void remote_call_decline(struct stopped_thread *thread)
{
	struct user_regs_struct registers = thread->registers;

	make_ended_call_again(&registers);
	if (registers.rax != thread->registers.rax)
		(void)stopped_thread_set_registers(thread, &registers);
	stopped_thread_release(thread);
}

static struct frame frame_of(
    const struct user_regs_struct *registers, const struct remote_code *code, uint64_t mask)
{
	return (struct frame){
	    .restorer = code->sigreturn,
	    .flags = FRAME_FLAGS,
	    .stack_flags = STACK_REFUSED,
	    .r8 = registers->r8,
	    .r9 = registers->r9,
	    .r10 = registers->r10,
	    .r11 = registers->r11,
	    .r12 = registers->r12,
	    .r13 = registers->r13,
	    .r14 = registers->r14,
	    .r15 = registers->r15,
	    .rdi = registers->rdi,
	    .rsi = registers->rsi,
	    .rbp = registers->rbp,
	    .rbx = registers->rbx,
	    .rdx = registers->rdx,
	    .rax = registers->rax,
	    .rcx = registers->rcx,
	    .rsp = registers->rsp,
	    .rip = registers->rip,
	    .eflags = registers->eflags,
	    .cs = (uint16_t)registers->cs,
	    .ss = (uint16_t)registers->ss,
	    .mask = mask,
	};
}

/* The frames, laid out as in the target. */
struct frames {
	uint64_t tell; /* address of "tell": the function's stack pointer */
	uint64_t text;
	uint64_t mark_at, mark; /* a random number, written with the frames, and its address */
	int signal;
	uint64_t ending; /* signals with handlers that the thread's own system call would have let in */
	bool ended;      /* one of these signals was handled */
};

/*
 * Is the thread's memory the one that the frames were written to? If not, the thread has executed another
 * program, maybe with more rights than the target's; or another process has the target's pid now. The memory
 * lives on all the same if the target shares it with a process that it has made. All that was found out of
 * the thread by that memory, and the address of the function, is wrong then.
 */
static bool has_mark(const struct stopped_thread *thread, const struct frames *frames)
{
	uint64_t found;

	return stopped_thread_peek(thread, frames->mark_at, &found) == 0 && found == frames->mark;
}

/* Writes the mark before all else. In a memory that is not the thread's nothing stays written. */
static int write_mark(
    const struct address_space *space, const struct stopped_thread *thread, struct frames *frames)
{
	uint64_t before;

	if (getrandom(&frames->mark, sizeof(frames->mark), 0) != sizeof(frames->mark) ||
	    address_space_read(space, frames->mark_at, &before, sizeof(before)) != 0 ||
	    address_space_write(space, frames->mark_at, &frames->mark, sizeof(frames->mark)) != 0)
		return -EAGAIN;
	if (has_mark(thread, frames))
		return 0;
	(void)address_space_write(space, frames->mark_at, &before, sizeof(before));
	return -ESRCH;
}

static int write_frames(
    const struct remote_call *call, const struct stopped_thread *thread, struct frames *frames)
{
	unsigned char vector[STOPPED_THREAD_VECTOR_BYTES + STOPPED_THREAD_MARK_BYTES];
	char status[PROC_STATUS_BYTES], text[TEXT_BYTES] = "";
	size_t vector_bytes = stopped_thread_frame_vector(thread->vector, thread->vector_bytes, vector);
	uint64_t vector_at = (thread->registers.rsp - RED_ZONE_BYTES - vector_bytes) & ~UINT64_C(63);
	uint64_t back_at = (vector_at - TEXT_BYTES - sizeof(struct frame)) & ~UINT64_C(15);

	/* 8 above a multiple of 16, as after a call instruction */
	frames->tell = back_at - TELL_WORDS * sizeof(uint64_t);
	frames->text = vector_at - TEXT_BYTES;
	if (!vector_bytes || proc_read(thread->tid, "status", status, sizeof(status)) <= 0)
		return -EAGAIN;
	frames->signal = choose_signal(status);
	frames->ending = proc_status_number(status, "\nSigCgt:", 16, 0) &
	    ~proc_status_number(status, "\nSigBlk:", 16, UINT64_MAX);
	frames->ended = false;
	const long inner = inner_id(status, "\nNSpid:");
	if (inner <= 0) /* the thread could not tell us that the function has returned */
		return -EAGAIN;
	struct user_regs_struct registers = thread->registers;
	make_call_again(&registers);
	struct frame back = frame_of(&registers, call->code, thread->signal_mask);
	back.vector_state = vector_at;
	const uint64_t tell[TELL_WORDS] = {call->code->pop_rax, SYS_tkill, call->code->pop_rdi,
	    (uint64_t)inner, call->code->pop_rsi, (uint64_t)frames->signal, call->code->system_call};
	const size_t text_bytes = sizeof(text) - sizeof(frames->mark); /* the mark is behind the text */
	if (call->text && snprintf(text, text_bytes, "%s", call->text) >= (int)text_bytes)
		return -EAGAIN;
	const struct address_space *space = call->space;
	frames->mark_at = frames->text + text_bytes;
	const int error = write_mark(space, thread, frames);
	if (error)
		return error;
	const bool written = address_space_write(space, vector_at, vector, vector_bytes) == 0 &&
	    address_space_write(space, frames->text, text, text_bytes) == 0 &&
	    address_space_write(space, back_at, &back, sizeof(back)) == 0 &&
	    address_space_write(space, frames->tell, tell, sizeof(tell)) == 0;
	return written ? 0 : -EAGAIN;
}

static int begin(
    const struct remote_call *call, const struct stopped_thread *thread, const struct frames *frames)
{
	struct user_regs_struct registers = thread->registers;

	registers.rip = call->function;
	registers.rsp = frames->tell;
	registers.rdi = call->text ? frames->text : call->first;
	registers.rsi = call->second;
	registers.rax = 0;
	registers.orig_rax = UINT64_MAX;
	registers.eflags &= ~(uint64_t)(DIRECTION_FLAG | TRAP_FLAG);
	int error = stopped_thread_set_registers(thread, &registers);
	if (error)
		return error;
	/* The registers are set. From here on the thread must go through the call. */
	(void)stopped_thread_set_mask(thread, (thread->signal_mask | deferred()) & ~bit(frames->signal));
	(void)stopped_thread_go(thread, 0);
	return 0;
}

/* The call is over: the thread is stopped behind tkill, before its signal. */
static bool is_told(const struct remote_call *call, const struct frames *frames, pid_t tid, int signal)
{
	static struct stopped_thread now;

	now.tid = tid;
	return signal == frames->signal && stopped_thread_read(&now) == 0 &&
	    now.registers.rip == call->code->system_call + 2 && now.registers.rsp > frames->tell &&
	    has_mark(&now, frames);
}

static int wait_for_end(const struct remote_call *call, const struct stopped_thread *thread,
    struct frames *frames, uint64_t limit_ns)
{
	const uint64_t end_ns = clock_now_ns() + limit_ns;
	int late = 0; /* why we stop waiting */

	for (;;) {
		uint64_t now_ns = clock_now_ns(), left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
		int signal;
		enum stopped_thread_stop stop = stopped_thread_wait(
		    thread->tid, late ? limit_ns : left_ns, late ? -1 : thread->cancel_fd, &signal);

		switch (stop) {
		case STOPPED_THREAD_ENDED:
			return -ESRCH;
		case STOPPED_THREAD_SIGNAL:
			if (is_told(call, frames, thread->tid, signal))
				return 0;
			frames->ended = frames->ended || (frames->ending & bit(signal));
			(void)stopped_thread_go(thread, signal);
			break;
		case STOPPED_THREAD_GROUP:
			(void)stopped_thread_listen(thread);
			break;
		case STOPPED_THREAD_INTERRUPTED:
			if (late)
				return late;
			(void)stopped_thread_go(thread, 0);
			break;
		default:
			if (late)
				return late;
			late = stop == STOPPED_THREAD_CANCELED ? -ECANCELED : -ETIMEDOUT;
			(void)stopped_thread_interrupt(thread);
			break;
		}
	}
}

int remote_call_run(const struct remote_call *call, struct stopped_thread *thread, uint64_t limit_ns)
{
	struct frames frames;
	int error = write_frames(call, thread, &frames);

	if (!error)
		error = begin(call, thread, &frames);
	if (error) {
		remote_call_decline(thread);
		return error == -ESRCH ? error : -EAGAIN;
	}
	error = wait_for_end(call, thread, &frames, limit_ns);
	if (!error) {
		make_ended_call_again(&thread->registers);
		if (frames.ended)
			end_call(&thread->registers);
		(void)stopped_thread_set_vector(thread);
		(void)stopped_thread_set_mask(thread, thread->signal_mask);
		(void)stopped_thread_set_registers(thread, &thread->registers);
	}
	if (error != -ESRCH)
		stopped_thread_release(thread);
	return error;
}

#else /* fitness_examine refuses every process before one of these is called */

int remote_code_find(struct remote_code *code, const struct address_space *space, const struct mapping *libc)
{
	return -ENOSYS;
}

bool remote_call_ends_call(uint64_t number, const uint64_t arguments[6])
{
	return false;
}

int remote_call_socket(uint64_t number, const uint64_t arguments[6])
{
	return -1;
}

void remote_call_decline(struct stopped_thread *thread)
{
	stopped_thread_release(thread);
}

int remote_call_run(const struct remote_call *call, struct stopped_thread *thread, uint64_t limit_ns)
{
	stopped_thread_release(thread);
	return -ENOSYS;
}

#endif
