/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is in a restartable sequence (rseq) nearly all the time, as per-CPU allocators and counters
 * are: it says "ready", and at its end "sequences N aborted N broken N". One that was interrupted must be
 * aborted; broken: it went on as if nothing had been, which the kernel shows by having forgotten it.
 *
 *     attach_sequence MS     for so long
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <sys/rseq.h>

static uint64_t sequences, aborted, broken;

/* About 50 us; most of the time a thread that is stopped is in it. */
static void run_sequence(struct rseq *area)
{
	uint64_t turns = 100 * 1000, left = 0;

	__asm__ volatile goto(".pushsection __rseq_cs, \"aw\"\n.balign 32\n"
	                      "3: .long 0, 0\n.quad 1f, 2f - 1f, 4f\n.popsection\n"
	                      "lea 3b(%%rip), %%rax\nmov %%rax, %[descriptor]\n"
	                      "1: dec %[turns]\njnz 1b\n"
	                      "mov %[descriptor], %[left]\n2:\n"
	                      ".pushsection .text.unlikely, \"ax\"\n"
	                      ".byte 0x0f, 0xb9, 0x3d\n.long %c[signature]\n"
	                      "4: jmp %l[abort]\n.popsection\n"
	                      : [turns] "+r"(turns), [left] "+r"(left), [descriptor] "+m"(area->rseq_cs)
	                      : [signature] "i"(RSEQ_SIG)
	                      : "rax", "memory", "cc"
	                      : abort);
	sequences++;
	broken += left == 0;
	return;
abort:
	aborted++;
}

int main(int argc, char *argv[])
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	struct timespec now, end;

	if (argc != 2 || __rseq_size == 0)
		return 77;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += atoi(argv[1]) / 1000;
	puts("ready");
	fflush(stdout);
	do {
		for (int i = 0; i < 100; i++)
			run_sequence(area);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	printf("sequences %lu aborted %lu broken %lu\n", sequences, aborted, broken);
	return sequences ? 0 : 1;
}
#else
int main(void)
{
	return 77;
}
#endif
