/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared memory between one program run and the sampler.
 *
 * A region consists of two memfds. The second one has the buffers (see "Dropping privileges"), the first one
 * has everything else. The sampler makes both, sizes them, seals them against shrinking and growing, and
 * prefaults what every program run needs from its start.
 *
 * A program run claims the region, maps it in the library's constructor, and never unmaps it. Forked
 * children inherit the mapping, and each claims a place in it. So no process needs a system call after its
 * start.
 *
 *   pool (read-only memfd, one per session)      proves to a run that this is the right session
 *   tickets (pipe, one per session)               one struct ticket per spare region; reading one claims it
 *   ledger (memfd, one per session)               where a run that found no ticket counts itself
 *   region (two memfds, each one per executed run):
 *
 *     +--------+---------+---------+--------+---------+-------+---------+-------+-----------+----------+
 *     | header | places  | modules | owners | buffers | frees | dropped | walk  | stack log | segments |
 *     |        |         |         |        |         |       | buffers |       |           |          |
 *     +--------+---------+---------+--------+---------+-------+---------+-------+-----------+----------+
 *       4 KiB    one per   written   place    stacks    ring    stacks    rows,   stacks of   slots, one
 *                process   by the    of each  taken by  of the  of some   stack   the blocks  for each
 *                          run       segment  the copy  last    children  counts  that live   live
 *                                             backend   frees   (below)                       sampled
 *                                                                                             block
 *
 * Size. The file has all segments that the program run may ever use (REGION_SEGMENTS at most). A file is
 * sparse, so a segment that nobody uses costs nothing. The program run's mapping does cost addresses, and
 * a limit may count them. So the program run maps only the first start_segments, as many as the period
 * needs. Later a program run may map the segments once more, all of them (preload/place.h).
 *
 * A program run without a session makes its region itself and offers it: the state is REGION_OFFERED, the
 * mode is off, and the descriptors are closed. Only the header's page has been written. A daemon that wants
 * the process finds the mappings, opens them through /proc/PID/map_files, seals them, fills in the sampler's
 * part of the header, and sets the mode. Each process of the program run sees the mode when its next
 * interval ends, and takes a place. The files are memfds called "heaptap" and "heaptap-buffers". Where a
 * seccomp filter or RLIMIT_FSIZE may forbid a memfd, the offer is anonymous shared memory ("/dev/zero
 * (deleted)"): nobody can have a descriptor of that.
 *
 * The peak. Inserts and frees of a place draw their order numbers from one counter. The insert that takes
 * the live heap to a new maximum stores its number as the peak's. A block was live at the peak if it was
 * inserted up to that number and not freed before it. A freed slot keeps its content and its free's number
 * until it is used again; then, if the block belonged to the peak, it moves to the slot's entry in `kept`.
 * At most one block of a slot was live at any one instant, so one entry per slot is enough: nothing of the
 * peak is ever lost, and nothing grows.
 *
 * Dropping privileges. The stacks in the buffers are those of every process of the program run. A forked
 * child that changes its user id maps zeroes over the buffers, so a worker cannot read its master's
 * stacks. Any mapping of a file leads to the rest of the file (mremap, remap_file_pages). So the buffers are
 * a file of their own, which is mapped over the buffers' place in the region, and nowhere else; in the
 * region's own file that place stays a hole. No process of the run keeps a descriptor of either file.
 * From then on the child copies its stacks into dropped_buffers, where only such children write.
 * There are few of these buffers. A stack that finds none is lost (REGION_LOSS_USER_CHANGED), unless the
 * kernel dumps it or the hook walks it.
 *
 * Who writes what: the sampler writes the constant part of the header before the hand-over. In an offer the
 * program run has written magic, abi, offsets and segments already. The sampler writes `mode`,
 * `period_bytes` and `dumps_read` at any time, and resets places and segments of processes that are gone.
 * The target writes everything else. The sampler treats all of it as hostile: it keeps its own copy of every
 * size and offset and checks every value it reads.
 *
 * All integers are in native byte order: both sides run on one machine. Every struct's size is asserted
 * below.
 */
#ifndef PROTO_REGION_H
#define PROTO_REGION_H

#include "proto/loss.h"
#include "proto/stack_log.h"
#include "proto/walk.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REGION_ABI   25u
#define REGION_MAGIC 0x7061747061656831ull /* "1heaptap" */

enum {
	REGION_PAGE_BYTES = 4096,
	REGION_PAGE_BYTES_MOST = 64 << 10, /* aarch64 kernels have pages of 4, 16 or 64 KiB */
	REGION_PLACES = 256,               /* processes of one run at the same time */
	REGION_SEGMENT_SLOTS = 1024,       /* slots that a place gets at a time */
	REGION_SEGMENTS = 4096,            /* limit: 4 M live samples per run and its children */
	REGION_MODULES_BYTES = 128 * 1024,
	REGION_PATH_BYTES = 256,
	REGION_COMMAND_LINE_BYTES = 4096, /* longer ones are cut */
	REGION_FREES = 4096,              /* entries of the ring; a power of two */
	REGION_NAME_BYTES = 64,           /* name of a snapshot that the program requests */
	REGION_BUILD_ID_MAX = 20,
	REGION_WATCHES = 8,
};

/* How the hook gets a sample's stack to the sampler. */
enum region_mode {
	REGION_MODE_OFF = 0,     /* no sampler: no samples are taken, frees are still recorded */
	REGION_MODE_COPY = 1,    /* the hook copies registers and stack into a buffer */
	REGION_MODE_TRIGGER = 2, /* the hook calls trigger(), where a uprobe or breakpoint waits */
};

/* A count and its weight: unbiased estimates of bytes (in 1/256) and objects (in 1/65536), see
 * proto/weight.h. */
struct region_tally {
	_Atomic uint64_t samples;
	_Atomic uint64_t bytes_q8;
	_Atomic uint64_t objects_q16;
};

/* Where the parts of a region begin, in bytes from its start; `end` is its size. */
struct region_offsets {
	uint64_t places, modules, stacks, command_line, owners, buffers, frees, dropped_buffers, walk,
	    stack_log, segments, end;
};

/* The size of the buffers' file. */
static inline uint64_t region_buffers_bytes(const struct region_offsets *offsets)
{
	return offsets->frees - offsets->buffers;
}

/*
 * The uprobe is set on the instruction that the library's note names. The breakpoint is set this many bytes
 * after it, at header.trigger_address.
 *
 * On aarch64 the two must differ. To pass a breakpoint the kernel makes the thread take a single step; a
 * uprobe takes a single step, too. The kernel takes one step for the other (reinstall_suspended_bps,
 * arch/arm64/kernel/hw_breakpoint.c), and the thread runs on past the uprobe's slot into undefined
 * instructions (seen on 6.1: SIGILL). And anybody may set a uprobe where the note says.
 */
enum {
#if defined(__aarch64__)
	REGION_BREAKPOINT_AT = 4,
#else
	REGION_BREAKPOINT_AT = 0,
#endif
};

/* The stack of a thread that ran already when its process was attached to: [low, high), with the thread's
 * control block at its high end. The sampler writes them, sorted, before the hand-over. */
struct region_stack {
	uint64_t low, high;
};
enum { REGION_STACKS = 4096 };

/* Addresses of code. */
struct region_range {
	uint64_t start, end;
};
enum { REGION_START_FILES = 112 };

struct region_header {
	/* constant, written by the sampler */
	_Alignas(REGION_PAGE_BYTES) uint64_t magic;
	uint32_t abi;
	uint32_t region_id;
	uint64_t key; /* the bits of REGION_KEY_PLACE are 0; the place's index goes there */
	struct region_offsets offsets;
	uint32_t segments;       /* how many the file has, at most REGION_SEGMENTS */
	uint32_t start_segments; /* how many of them the run maps when it starts */
	uint32_t large_buffers;  /* how many stack buffers of the largest class there are */
	/* A signal with this number requests a snapshot, unless the program handles or ignores the signal.
	 * 0: no signal does. */
	uint32_t snapshot_signal;
	uint32_t start_paused;        /* 1: no samples until heaptap_start() */
	uint32_t no_peak;             /* 1: the peak is not kept, and its numbers stay 0 */
	uint32_t record_mmap;         /* 1: anonymous mappings are blocks too */
	uint32_t dump_bytes;          /* the copy backend takes deeper stacks than this */
	_Atomic uint32_t sampler_pid; /* the sampler that reads the region now, and has its descriptor open */
	/* The clock of slot times. It needs no system call on this machine. The program run may change it to
	 * the coarse clock, if a filter is in force. */
	uint32_t clock_id;
	uint32_t signal_everywhere; /* 1: snapshot_signal is for every process, not only COMMAND's own */
	uint32_t thread_stacks;     /* entries of `stacks`; 0 unless the process ran already */
	uint32_t filtered;          /* 1: the process ran already, with a seccomp filter in force */
	/* How long the process had run when heaptap attached to it, and its resident memory at that moment.
	 * A sampler that adopts the process reads them. 0: heaptap started the process. */
	uint64_t attached_after_ns, attached_rss_bytes;
	/* Likewise: the end of the next mapping below the main thread's stack; 0: unknown. */
	uint64_t below_main_stack;
	uint32_t wants_command_line; /* 1: the run writes its command line, arguments separated by blanks */
	/* at this period and below, the hook copies stacks while there are buffers, in any mode */
	uint64_t copy_period_bytes;
	/* The hook also copies stacks while this many dumps may wait in the rings. Each ring has room for
	 * several times as many, since all program runs of a session share it. */
	uint64_t dumps_most;
	/* The session of the daemon that has taken the offer (sampler/cmd/daemon/daemon_state.h). A later
	 * daemon of that session may turn sampling off. 0: no daemon has taken the offer. */
	uint64_t session;
	/* The library's file on which the uprobe is; 0: there is none. A program that has loaded a copy of
	 * the library, in a chroot or a container, begins with REGION_MODE_COPY: no uprobe fires there. */
	uint64_t uprobe_dev, uprobe_ino;

	/* set by the sampler at any time */
	_Alignas(128) _Atomic uint32_t mode; /* enum region_mode */
	/* 0: no stacks are walked. N, a power of two: one of N walked samples is dumped too, for comparison.
	 * */
	_Atomic uint32_t walk;
	_Atomic uint64_t period_bytes;
	_Atomic uint64_t dumps_read; /* what `dumps` was before the rings were last emptied */
	_Atomic uint64_t extra_bytes[REGION_WATCHES]; /* region_set_period() */
	_Atomic uint32_t watch;

	/* written by the program run */
	_Alignas(128) _Atomic uint32_t state; /* enum region_state */
	uint32_t pid;
	uint64_t trigger_address;          /* of the instruction for a breakpoint */
	_Atomic uint64_t places_exhausted; /* processes that found no free place and are not sampled */
	_Atomic uint64_t places_claimed;   /* by forked children: a change means a new process */
	/* number of buffers filled so far: a change means there is something to read */
	_Atomic uint64_t copied;
	_Atomic uint64_t dumps; /* that the kernel was asked for, of all places */
	uint32_t unseen;        /* enum region_unseen, or'ed */
	uint32_t declined;      /* enum region_declined, if that is the state */
	/* requests for snapshots, of all places: a change means that a place has a new one */
	_Atomic uint64_t requests;
	/* Memory that the library has mapped for itself beside the region. own: at the start; grown: later,
	 * when the first was full. 0 and 0: none. */
	uint64_t own_start, own_end, grown_start, grown_end;
	/* children that changed their user id and take no more samples: the kernel refused to cut off the
	 * stacks of others */
	_Atomic uint64_t not_cut_off;
	_Atomic uint32_t taken; /* of an offer: 1 once a process has taken place 0 */
	uint32_t offered;       /* 1: the run made this region itself, and has offered it */
	/* Of a process that was attached to. imports: import slots that lead to the hooks. unseen_files:
	 * files whose calls of the allocator bypass the hooks (names, separated by commas). */
	_Atomic uint32_t imports;
	_Atomic uint32_t attaching; /* enum region_attaching: the first to change it wins */
	char unseen_files[REGION_PATH_BYTES];
	/* code that stays where it is for as long as the program runs (preload/start_files.h) */
	uint32_t start_files;
	/* Processes that take no more samples: they have set themselves a limit of memory, and the limit left
	 * no room for the library's memory. */
	_Atomic uint32_t not_afforded;
	struct region_range start_file[REGION_START_FILES];

	_Alignas(128) _Atomic uint64_t frees_head; /* entries ever begun */
};

/*
 * How a new period reaches every thread of every process with its next allocation, though no thread asks for
 * the period. With each allocation a thread subtracts from its interval the bytes of the allocation, and also
 * the word extra_bytes[i]. The thread read `i` from `watch` on its last slow path through the hook. The word
 * is 0 until the period changes. At a change `watch` becomes the next number, and every other word of the
 * eight becomes so large that it ends any interval. So a thread that does not know the period comes to the
 * slow path. There its own count of bytes tells it that its interval has not ended, and it takes the new `i`.
 *
 * What is left of its interval is dropped, and another one is drawn with the new period. That is no bias: the
 * exponential distribution is memoryless, and the change does not depend on what is left. A block is counted
 * at one moment, by one word. So one period decides about the whole block, and its sample carries that.
 *
 * A thread that allocates nothing during a multiple of eight changes keeps its old interval, and its sample
 * carries that period. At a period of 1 this cannot happen: then every word is large, since each allocation
 * takes the slow path anyway, and "every allocation" is true from the first allocation on.
 */
#define REGION_EXTRA_BYTES (1ull << 62)

static inline void region_recount(struct region_header *header)
{
	const uint32_t watch = (atomic_load(&header->watch) + 1) % REGION_WATCHES;
	const bool every = atomic_load(&header->period_bytes) <= 1;

	for (uint32_t i = 0; i < REGION_WATCHES; i++)
		atomic_store(&header->extra_bytes[i], i != watch || every ? REGION_EXTRA_BYTES : 0);
	atomic_store(&header->watch, watch);
}

/* Sets the period, from the next allocation on. */
static inline void region_set_period(struct region_header *header, uint64_t period_bytes)
{
	if (atomic_exchange(&header->period_bytes, period_bytes) != period_bytes)
		region_recount(header);
}

/* Parts of the program's heap that the library does not see. */
enum region_unseen {
	REGION_UNSEEN_MALLOC = 1, /* the program, or a library preloaded before ours, defines malloc */
	REGION_UNSEEN_FILES = 2,  /* attached: those in unseen_files */
};

enum region_state {
	REGION_SPARE = 0,
	REGION_CLAIMED = 1,  /* a run has mapped it */
	REGION_READY = 2,    /* the run's part of the header is complete */
	REGION_DECLINED = 3, /* the run does not use it: `declined` says why */
	REGION_OFFERED = 4,  /* the run has made it and mapped it: it waits for a sampler */
};

/* Did an attaching succeed? The sampler waits for the program run, but not for ever. The first of the two
 * that changes the word decides. */
enum region_attaching {
	REGION_ATTACHING = 0,
	REGION_ATTACHED = 1, /* by the run: the hooks are in */
	REGION_GIVEN_UP = 2, /* by the sampler: the run takes them out again */
};

/* Why a program run that got a region is not profiled. The name table is region_declined_text(). */
enum region_declined {
	REGION_DECLINED_NO_MEMORY = 1,      /* no room: RLIMIT_AS, RLIMIT_DATA, or mmap refused */
	REGION_DECLINED_NO_FORK_NOTICE = 2, /* neither MADV_WIPEONFORK nor an atfork hook of the libc */
	REGION_DECLINED_OVERCOMMIT = 3,     /* vm.overcommit_memory=2: memory is refused when it is used */
	REGION_DECLINED_SANITIZER = 4,      /* gcc's ThreadSanitizer is not ready when samples are */
};

enum place_state {
	PLACE_FREE = 0,
	PLACE_CLAIMED = 1, /* being filled */
	PLACE_READY = 2,
	PLACE_DEAD = 3, /* set by the sampler while it cleans up */
};

/* One process. Only the process adds to the counters, and nothing resets them; the sampler takes
 * differences. */
struct region_place {
	_Alignas(512) _Atomic uint32_t state; /* enum place_state */
	/* The pid in the pid namespace of the process. A child that was forked without the libc may write
	 * another number: the id of the thread that has claimed the place, or the parent's pid. */
	uint32_t pid;
	/* place index + 1 of the process it was forked from; 0 for the program run itself */
	uint32_t parent;
	uint32_t inherited; /* live samples carried over from the parent */
	uint64_t start_ns;
	_Atomic uint64_t next_seq;

	struct region_tally allocated; /* every sample ever taken */
	struct region_tally live;      /* what is live now: frees are subtracted */
	_Atomic uint64_t peak_bytes_q8, peak_objects_q16, peak_samples, peak_ns;
	/* bytes squared, and of samples with a large one in WEIGHT_LARGE_UNIT (weight_is_large) */
	_Atomic uint64_t live_variance, live_large_variance;

	struct region_tally lost[REGION_LOSS_COUNT];

	_Atomic uint64_t walked;     /* samples whose stacks were walked (proto/walk.h) */
	_Atomic uint64_t triggered;  /* samples whose stacks the kernel is to dump */
	_Atomic uint64_t peak_order; /* order number of the peak, plus 1; 0: none yet */
	_Atomic uint32_t signals;    /* snapshots requested by signal */
	/* requests by heaptap_snapshot(); when one is served, the sampler copies `asked` into `answered` */
	_Atomic uint32_t asked, answered;
	/* how often the sampler has emptied the place: tells the processes apart that had it in turn */
	_Atomic uint32_t generation;
	/* The numbers of the requests that the sampler has refused last, first << 32 | last. Written before
	 * `answered`. */
	_Atomic uint64_t refused;
	_Atomic uint32_t paused;                     /* 1: no samples are taken now */
	uint32_t parent_generation;                  /* the generation of the parent's place at the fork */
	_Atomic uint64_t paused_since_ns, paused_ns; /* `paused_ns`: sum of the pauses that have ended */
	_Atomic uint64_t unmaps;                     /* calls of dlclose (proto/loader_log.h) */
	uint64_t forked_unmaps; /* `unmaps` when the process was forked, or when it took the place */
	char asked_name[REGION_NAME_BYTES];
};

enum slot_state {
	SLOT_FREE = 0, /* never used */
	SLOT_WRITING = 1,
	SLOT_LIVE = 2,
	SLOT_FREED = 3, /* the block's description stands until the slot is used again */
};

/* A slot's word: the order number of the block's insertion, and enum slot_state in the low byte. */
enum { SLOT_STATE_BITS = 8 };
#define SLOT_STATE_MASK ((1ull << SLOT_STATE_BITS) - 1)

static inline uint64_t slot_word(uint64_t seq, enum slot_state state)
{
	return seq << SLOT_STATE_BITS | (uint64_t)state;
}

static inline uint64_t slot_word_seq(uint64_t word)
{
	return word >> SLOT_STATE_BITS;
}

static inline enum slot_state slot_word_state(uint64_t word)
{
	return (enum slot_state)(word & SLOT_STATE_MASK);
}

enum { REGION_SAMPLE_PERIOD_BITS = 41, REGION_SAMPLE_STACK_BITS = 23 };
#define REGION_SAMPLE_PERIOD_MASK ((UINT64_C(1) << REGION_SAMPLE_PERIOD_BITS) - 1)
#define REGION_SAMPLE_STACK_MASK  ((1u << REGION_SAMPLE_STACK_BITS) - 1)

/* What is known of a sample when it is taken. `seq`, its order number in the place that took it, and `slot`
 * name it. */
struct region_sample {
	uint64_t seq;
	uint64_t size_bytes; /* as the caller asked: may be 0 */
	/* in force when the interval that ended here was drawn; at most WEIGHT_PERIOD_MAX, 2^40 */
	uint64_t period_bytes : REGION_SAMPLE_PERIOD_BITS;
	/* number of its stack by the walk backend (proto/walk.h); 0: by a dump */
	uint64_t stack : REGION_SAMPLE_STACK_BITS;
	uint64_t time_ns; /* of the allocation */
	uint32_t slot;    /* REGION_NO_SLOT: none */
	uint32_t tid;     /* of the allocating thread; 0 unknown */
};

/* One live sampled block. `word` (slot_word) is stored with release last; a reader takes the fields between
 * two equal loads of it. Freeing changes only `freed_order`, before the word: it has no
 * meaning in a live slot. */
struct region_slot {
	_Atomic uint64_t word;
	_Atomic uint64_t freed_order; /* SLOT_FREED: order number of the free */
	/* `seq` and `slot` are this slot's own, unless the block is inherited. Then they are those of the
	 * parent's slot, by which the sampler finds the block's stack. */
	struct region_sample sample;
	uint16_t flags;                  /* enum slot_flags */
	uint16_t origin_place;           /* SLOT_INHERITED: the parent's place */
	_Atomic uint32_t unmapped_pages; /* SLOT_MMAP: of 4 KiB each; size_bytes keeps the first size */
};

enum slot_flags {
	SLOT_INHERITED = 1, /* allocated by a process that this one was forked from */
	SLOT_MMAP = 2,      /* a mapping, not a block of the heap */
};

/* The slots that a place gets at a time. */
struct region_segment {
	struct region_slot slots[REGION_SEGMENT_SLOTS];
	struct region_slot kept[REGION_SEGMENT_SLOTS]; /* the peak's block that the slot has moved on from */
	/* Where each slot's block is. An address identifies nothing; the addresses of all blocks say which of
	 * the process' mappings are the allocator's (sampler/intake/resident.h). */
	_Atomic uint64_t addresses[REGION_SEGMENT_SLOTS];
	struct stack_log_slot logged[REGION_SEGMENT_SLOTS]; /* proto/stack_log.h */
};

/* A sampled block that was freed. `word` is the entry's number in the ring's history plus 1, stored last, and
 * REGION_FREE_BUSY meanwhile. Writers never wait: an entry that the sampler has not read in time is
 * overwritten; the sampler counts the numbers that are missing. */
#define REGION_FREE_BUSY UINT64_MAX
struct region_free {
	_Atomic uint64_t word;
	struct region_sample sample;
	uint64_t freed_ns;
	uint32_t freed_tid; /* of the freeing thread; 0 unknown */
	uint32_t place;
};

/* A file that the loader had mapped when the constructor ran. Followed by the path, NUL-terminated, padded to
 * 8. The first file is the program. If the program was executed by another path than that of its file, an
 * entry with that path and an empty range comes before the program's. */
struct region_module {
	uint32_t total_bytes;
	uint32_t build_id_bytes;
	uint64_t start, end;  /* executable range */
	uint64_t file_offset; /* of start */
	uint64_t dev, ino;    /* as stat() says; 0: not asked */
	uint8_t build_id[REGION_BUILD_ID_MAX];
	uint32_t path_bytes;
};

/* The trigger's first register: the region's key, with the place's index in these bits of it. */
#define REGION_KEY_PLACE 0xffffull

/* In the trigger's second register, added to the slot's number: the sample is a mapping. */
#define REGION_TRIGGER_MMAP (1ull << 32)

/* The trigger's fifth register: the period, and above it the stack's number if the sample was walked. */
enum { REGION_STACK_SHIFT = REGION_SAMPLE_PERIOD_BITS };

/* "No slot": the sample was counted but has no place in the table. */
#define REGION_NO_SLOT UINT32_MAX

_Static_assert(sizeof(struct region_header) == 4096, "header is one page");
_Static_assert(sizeof(struct region_place) == 512, "place layout");
_Static_assert(sizeof(struct region_sample) == 40, "no padding");
_Static_assert(sizeof(struct region_slot) == 64, "a slot is one cache line");
_Static_assert(sizeof(struct region_segment) % REGION_PAGE_BYTES == 0, "segments share no page");
_Static_assert(sizeof(struct region_free) == 64, "a free is one cache line");

#endif
