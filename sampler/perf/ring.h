/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf rings: one per CPU, shared by all targets of a session, since an unprivileged user may lock little
 * memory (perf_event_mlock_kb). Each ring belongs to a dummy event on ourselves; the targets' events are
 * redirected into it.
 *
 * The kernel reserves the full dump that was asked for, however short the stack is: a 32 KiB dump takes 33 KB
 * of ring.
 */
#ifndef SAMPLER_PERF_RING_H
#define SAMPLER_PERF_RING_H

#include "sampler/perf/record.h"

#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct rings;

/* The clock of every record; slots and rings share it. */
enum { RING_CLOCK = 1 /* CLOCK_MONOTONIC */ };

/* How many bytes of the stack to ask the kernel for, if stack_bytes are wanted: a multiple of 8, at most
 * 64000. The size of a record has 16 bits, and registers and the kernel's call chain need the rest. */
uint32_t ring_dump_bytes(uint32_t stack_bytes);

/* Sets the attributes that all our events have in common. */
void ring_attr_init(struct perf_event_attr *attr, uint32_t dump_bytes);

/*
 * The size of each of `cpus` rings: want_bytes, a power of two, or less. Rings cannot be swapped out, and a
 * size that is small on two CPUs adds up to gigabytes on a hundred. All rings together take at most 512 MiB,
 * and at most 1/32 of the machine's memory. Pure.
 */
size_t rings_share(size_t want_bytes, uint64_t cpus, uint64_t memory_bytes);

/*
 * Opens one ring per online CPU, each of rings_share() bytes, or less where the user's limits allow no more.
 * NULL with *error = -errno.
 */
struct rings *rings_open(size_t want_bytes, int *error);
void rings_close(struct rings *rings);

size_t rings_count(const struct rings *rings);
size_t rings_room(const struct rings *rings, uint32_t dump_bytes); /* samples that fit in one ring */
int rings_cpu(const struct rings *rings, size_t i);
int rings_fd(const struct rings *rings, size_t i); /* to poll and to redirect into */

/*
 * Calls `taken` for each record that was in the rings when the call began, merged by time over the rings. The
 * record is valid during the call of `taken`. Returns the number of records; counts malformed ones in *bad.
 */
size_t rings_drain(struct rings *rings, uint64_t regs_mask,
    void (*taken)(void *context, const struct record *record), void *context, uint64_t *bad);

/*
 * The same for rings into which events of several kinds write (record_parse_event), and only for records up
 * to `until_ns` (UINT64_MAX: all records). Younger records stay, since an older record may still arrive in a
 * ring that was read before.
 */
size_t rings_drain_events(struct rings *rings, const struct record_layouts *layouts, uint64_t until_ns,
    void (*taken)(void *context, const struct record *record), void *context, uint64_t *bad);

#endif
