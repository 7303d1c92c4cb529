/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/capture.h"

#include "preload/loader_log.h"
#include "preload/place.h"
#include "preload/sample.h"
#include "preload/tally.h"
#include "proto/buffer.h"
#include "proto/region.h"

#include <stdatomic.h>
#include <string.h>

/* The trigger's address, as a note in the format of SystemTap's user-space probes (three addresses, then
 * provider, name and arguments): strip keeps it, and perf, bpftrace and gdb can read it too. */
#define TRIGGER_NOTE                                                                             \
	".pushsection .note.stapsdt, \"\", \"note\"\n"                                           \
	".balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"   \
	"993: .8byte capture_probed, 0, 0\n.asciz \"heaptap\"\n.asciz \"sample\"\n.asciz \"\"\n" \
	"994: .balign 4\n.popsection\n"

#define TRIGGER ".globl capture_probed\n.hidden capture_probed\ncapture_probed: nop\n"
extern const char capture_probed[] __attribute__((visibility("hidden")));

/* The first instruction is a one-byte nop, which the kernel emulates. Never a five-byte nop, though it is
 * cheaper: x86 kernels from 6.18 on turn a uprobe on one into a call to a trampoline page that a forked
 * child does not get, and the child dies of SIGSEGV at its first sample (seen on 6.18.44).
 *
 * aarch64's second nop is the breakpoint's: see REGION_BREAKPOINT_AT. The function's own address is of no
 * use to anybody: a landing pad may be there. Never inlined or cloned: its arguments are in registers. */
void capture_trigger(
    uint64_t key, uint64_t slot, uint64_t seq, uint64_t size_bytes, uint64_t period_bytes, uint64_t time_ns);
__attribute__((noinline, noclone, used)) void capture_trigger(
    uint64_t key, uint64_t slot, uint64_t seq, uint64_t size_bytes, uint64_t period_bytes, uint64_t time_ns)
{
#if defined(__x86_64__)
	__asm__ volatile(TRIGGER TRIGGER_NOTE ::"D"(key), "S"(slot), "d"(seq), "c"(size_bytes) : "memory");
#else
	register uint64_t x0 __asm__("x0") = key, x1 __asm__("x1") = slot, x2 __asm__("x2") = seq;
	register uint64_t x3 __asm__("x3") = size_bytes, x4 __asm__("x4") = period_bytes;
	register uint64_t x5 __asm__("x5") = time_ns;
	__asm__ volatile(TRIGGER "nop\n" TRIGGER_NOTE ::"r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	                 : "memory");
#endif
}

uintptr_t capture_breakpoint(void)
{
	return (uintptr_t)capture_probed + REGION_BREAKPOINT_AT;
}

/* In the order of proto/region.h: callee-saved registers, stack pointer and program counter. */
#if defined(__x86_64__)
#define CAPTURE_REGISTERS(regs, sp)                                                                    \
	__asm__ volatile(                                                                              \
	    "movq %%rbx, (%1)\n\tmovq %%rbp, 8(%1)\n\tmovq %%rsp, 16(%1)\n\t"                          \
	    "movq %%r12, 24(%1)\n\tmovq %%r13, 32(%1)\n\tmovq %%r14, 40(%1)\n\tmovq %%r15, 48(%1)\n\t" \
	    "leaq 1f(%%rip), %%rax\n\tmovq %%rax, 56(%1)\n1:\n\tmovq %%rsp, %0"                        \
	    : "=r"(sp)                                                                                 \
	    : "r"(regs)                                                                                \
	    : "rax", "memory")
#elif defined(__aarch64__)
#define CAPTURE_REGISTERS(regs, sp)                                                                          \
	__asm__ volatile("stp x19, x20, [%1]\n\tstp x21, x22, [%1, #16]\n\tstp x23, x24, [%1, #32]\n\t"      \
	                 "stp x25, x26, [%1, #48]\n\tstp x27, x28, [%1, #64]\n\tstp x29, x30, [%1, #80]\n\t" \
	                 "mov x9, sp\n\tstr x9, [%1, #96]\n\tadr x9, 1f\n\tstr x9, [%1, #104]\n1:\n\t"       \
	                 "mov %0, sp"                                                                        \
	                 : "=r"(sp)                                                                          \
	                 : "r"(regs)                                                                         \
	                 : "x9", "memory")
#endif

/* The lowest free buffer among the first `count` of a class, or NULL. */
static struct region_buffer *class_take(
    uint32_t class, uint32_t count, unsigned char *buffers, _Atomic uint64_t *bitmap)
{
	for (uint32_t word = 0; word < buffer_words(count); word++) {
		const uint64_t bits = buffer_bits(count, word);
		uint64_t taken = atomic_load_explicit(&bitmap[word], memory_order_relaxed);

		while (~taken & bits) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~taken & bits);

			if (!atomic_compare_exchange_weak(&bitmap[word], &taken, taken | 1ull << bit))
				continue;
			size_t at = (word * 64u + bit) * (size_t)buffer_class[class].bytes;
			return (struct region_buffer *)(void *)(buffers + at);
		}
	}
	return NULL;
}

/* A free buffer with room for `stack_bytes`, of most_bytes at most; stacks larger than the largest buffer get
 * that one and are cut. modest: of the smallest class that has the room, and only of its lower half. */
static struct region_buffer *buffer_take(
    uint64_t stack_bytes, uint64_t most_bytes, bool modest, uint64_t *room)
{
	const struct region_offsets *offsets = &place_view.region.offsets;
	const bool dropped = place_view.cut_off;
	unsigned char *area = place_part(dropped ? offsets->dropped_buffers : offsets->buffers);
	_Atomic uint64_t *bitmap = (_Atomic uint64_t *)(void *)area;
	unsigned char *buffers = area + BUFFER_BITMAPS_BYTES;

	for (uint32_t c = 0; c < BUFFER_CLASSES && buffer_class[c].bytes <= most_bytes; c++) {
		*room = buffer_class[c].bytes - sizeof(struct region_buffer);
		const bool fits = *room >= stack_bytes || c + 1 == BUFFER_CLASSES;
		const uint32_t all = buffer_count(c, place_view.region.large_buffers, dropped);
		const uint32_t count = modest ? all / 2 : all;
		struct region_buffer *buffer = fits ? class_take(c, count, buffers, bitmap) : NULL;
		if (fits && modest && !buffer)
			return NULL;
		if (buffer) {
			atomic_store_explicit(
			    &buffer->word, buffer_word(BUFFER_WRITING, place_index()), memory_order_relaxed);
			return buffer;
		}
		bitmap += buffer_words(all);
		buffers += (size_t)all * buffer_class[c].bytes;
	}
	return NULL;
}

/* Not the libc's memcpy, which programs replace: a sanitizer's looks for the red zones that lie between the
 * variables of a stack, and reports them. On every processor of the last ten years this instruction is as
 * fast as any loop. */
static void copy_stack(void *to, const void *from, uint64_t bytes)
{
#if defined(__x86_64__)
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
	uint64_t *word_to = to;
	const uint64_t *word_from = from;
	uint64_t words = bytes / sizeof(uint64_t);
	for (uint64_t i = 0; i < words; i++)
		((volatile uint64_t *)word_to)[i] = word_from[i];
	for (uint64_t i = words * sizeof(uint64_t); i < bytes; i++)
		((volatile unsigned char *)to)[i] = ((const unsigned char *)from)[i];
#endif
}

/* The number of readable bytes from sp on, and whether they end at the end of the stack. */
static uint64_t stack_extent(uintptr_t sp, bool *whole)
{
	const struct sample_thread *self = &sample_thread;

	*whole = sp >= self->stack_low && sp < self->stack_top;
	return *whole ? self->stack_top - sp : REGION_PAGE_BYTES - sp % REGION_PAGE_BYTES;
}

/* The kernel's dump does not fault. It ends where a page is not present: of an array that was never written,
 * or one that was swapped out or given back. Any other reader faults it in. */
static void stack_make_present(uintptr_t from, uintptr_t to)
{
	for (uintptr_t at = from; at < to; at = (at / REGION_PAGE_BYTES + 1) * REGION_PAGE_BYTES)
		(void)*(const volatile unsigned char *)at;
}

/* Below the place where a stack is measured: the frame of the function that does it. */
enum { FRAME_BYTES = 512 };

static void buffer_fill(
    struct region_buffer *buffer, const struct live_entry *entry, enum buffer_content content, uint64_t bytes)
{
	buffer->place = place_index();
	buffer->sample = entry->sample;
	buffer->stack_bytes = (uint32_t)bytes;
	buffer->flags = entry->flags;
	buffer->unmaps = loader_log_now();
	buffer->content = (uint16_t)content;
	atomic_store_explicit(&buffer->word, buffer_word(BUFFER_FULL, place_index()), memory_order_release);
	atomic_fetch_add_explicit(&place_header()->copied, 1, memory_order_release);
}

/* Into a buffer of most_bytes at most. False: none was free. */
__attribute__((noinline)) static bool capture_copy(const struct live_entry *entry, uint64_t most_bytes)
{
	bool whole;
	uint64_t room;
	uint64_t extent = stack_extent((uintptr_t)__builtin_frame_address(0), &whole);
	struct region_buffer *buffer =
	    buffer_take(extent + FRAME_BYTES, most_bytes, entry->sample.stack != 0, &room);

	if (!buffer)
		return false;
	uint64_t *regs = buffer->regs;
	uintptr_t sp; /* not read back from the buffer, which others may write */
	CAPTURE_REGISTERS(regs, sp);
	extent = stack_extent(sp, &whole);
	uint64_t copied = extent < room ? extent : room;
	copy_stack(buffer + 1, (const void *)sp, copied);
	buffer_fill(buffer, entry, whole && copied == extent ? BUFFER_WHOLE_STACK : BUFFER_STACK, copied);
	return true;
}

/* For the number of a walked stack. If the rows have changed since it was walked, nothing is said of it. */
static bool capture_frames(const struct live_entry *entry, struct walk_start start, uint64_t bytes)
{
	uint64_t room;
	struct region_buffer *buffer = buffer_take(bytes, UINT64_MAX, false, &room);

	if (!buffer)
		return false;
	size_t count = walk_frames(start, (uint64_t *)(buffer + 1), room / sizeof(uint64_t));
	buffer_fill(buffer, entry, BUFFER_FRAMES, count * sizeof(uint64_t));
	return count != 0;
}

/* Few stacks have more frames than the smallest buffer has room for. */
bool capture_walked(const struct live_entry *entry, struct walk_start walked)
{
	return capture_frames(entry, walked, 0) ||
	    capture_frames(entry, walked, (WALK_FRAMES_MAX + 1) * sizeof(uint64_t));
}

/* The rings may be full before the sampler comes to read them. */
static bool dumps_wait(const struct region_header *header)
{
	const uint64_t read = atomic_load_explicit(&header->dumps_read, memory_order_relaxed);

	return atomic_load_explicit(&header->dumps, memory_order_relaxed) - read >= header->dumps_most;
}

bool capture_sample(const struct live_entry *entry, const struct walk_start *walked)
{
	struct region_header *header = place_header();
	bool whole;
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uint64_t extent = stack_extent(here, &whole);
	const struct region_sample *sample = &entry->sample;
	bool tapped = place_tapped() && !(whole && extent + FRAME_BYTES > header->dump_bytes);
	/* A copy is several times cheaper than a trap. A trap never lacks a buffer, and it slows down a
	 * thread that fills buffers faster than they are emptied. On a stack with unknown bounds a trap gets
	 * more of the stack. */
	const bool copies =
	    !tapped || (whole && (sample->period_bytes <= header->copy_period_bytes || dumps_wait(header)));
	/* Larger buffers are left to the stacks that no dump holds. */
	const uint64_t most_bytes = tapped ? header->dump_bytes : UINT64_MAX;

	if (copies && (capture_copy(entry, most_bytes) || (walked && capture_walked(entry, *walked))))
		return true;
	if (copies && sample->stack)
		return false; /* it is counted under its number */
	if (!tapped) {
		tally_lost(place_view.cut_off ? REGION_LOSS_USER_CHANGED : REGION_LOSS_NO_BUFFER, sample);
		return false;
	}
	if (whole)
		stack_make_present(here, here + extent);
	atomic_fetch_add_explicit(&place_self()->triggered, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&header->dumps, 1, memory_order_relaxed);
	capture_trigger(place_key(), sample->slot | (entry->flags & SLOT_MMAP ? REGION_TRIGGER_MMAP : 0),
	    sample->seq, sample->size_bytes,
	    sample->period_bytes | (uint64_t)sample->stack << REGION_STACK_SHIFT, sample->time_ns);
	return true;
}
