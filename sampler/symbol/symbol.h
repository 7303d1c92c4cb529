/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From (ELF file, address) to functions, inlined calls, source lines.
 *
 * Work comes in batches: all unknown addresses of one file at a time. The file and its separate debug file
 * are opened, read and closed again within one call of symbols_resolve(); what stays is the answer's strings,
 * until symbols_free(). Nothing here needs the process that the file came from.
 *
 * The files are hostile input. This code bounds its own recursion, memory and work, but libelf and libdw read
 * the same bytes through mmap (a file that shrinks meanwhile raises SIGBUS), so call it in a short-lived
 * child with RLIMIT_AS and RLIMIT_CPU set, and send the answers to the parent with symcodec.h. One `struct
 * symbols` is for one thread.
 *
 * Names are in the style the pprof world expects (facts: pprof, section 1): demangled without parameters and
 * return type, with template arguments. system_name is the symbol as the linker knows it.
 */
#ifndef SAMPLER_SYMBOL_SYMBOL_H
#define SAMPLER_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

enum symbol_level {
	SYMBOL_FULL,      /* functions, inlined calls, files, lines */
	SYMBOL_FUNCTIONS, /* functions from symbol tables only: never opens DWARF */
	SYMBOL_RAW,       /* nothing: every result has no frames */
};

/* The best kind of names that one file offered. Order is quality. */
enum symbol_source {
	SYMBOL_NONE,      /* every name is the fallback */
	SYMBOL_DYNSYM,    /* exported functions only */
	SYMBOL_MINIDEBUG, /* .gnu_debugdata */
	SYMBOL_SYMTAB,    /* .symtab of the file or of its debug file */
	SYMBOL_DWARF,
};

struct symbol_options {
	enum symbol_level level;
	/*
	 * Folder of the disk cache, created when missing (symcache_folder() knows the usual one); NULL:
	 * none.
	 */
	const char *cache_folder;
	uint64_t cache_limit_bytes; /* of the whole folder; 0: SYMCACHE_LIMIT_BYTES */
	const char *debug_root;     /* where separate debug files are kept; NULL: /usr/lib/debug */
	bool debuginfod; /* ask the servers in $DEBUGINFOD_URLS for debug files that are not here */
};

/* One loaded file. Everything stays the caller's; fd is read with pread and mmap, its offset is not used. */
struct symbol_file {
	int fd;
	const char *path; /* as the target saw it; for fallback names and to find the debug file beside it */
	const uint8_t *build_id; /* NULL: none, then nothing of this file is cached on disk */
	size_t build_id_bytes;
	/* tells it from all other files that the struct symbols is asked about; NULL: nothing does */
	const void *key;
};

struct symbol_frame {
	const char *name;        /* never NULL or empty */
	const char *system_name; /* never NULL; the same pointer as name where nothing was demangled */
	const char *file;        /* absolute where the debug info allows; NULL: unknown */
	uint32_t line;           /* 0: unknown */
	uint32_t start_line;     /* line where the function is declared; 0: unknown */
	bool inlined;            /* into the next frame; false for the last frame only */
};

/* Innermost frame first. Frames and strings live as long as the struct symbols that made them. */
struct symbol_result {
	const struct symbol_frame *frames;
	uint32_t frame_count;
	bool known; /* false: nothing was found, the one frame is the fallback `libfoo.so.1+0x1a2b` */
};

/* What one file had to offer, for pprof's Mapping.has_* flags: not whether each address was lucky. */
struct symbol_facts {
	enum symbol_source source;
	bool has_lines;
	bool has_inlines;
	bool debug_file; /* the names come (also) from a separate debug file */
};

/* Copies the options. NULL when out of memory. */
struct symbols *symbols_new(const struct symbol_options *options);
void symbols_free(struct symbols *symbols);

/*
 * Fills out[i] for vaddrs[i], i < n. Addresses are virtual addresses of the ELF file (not of the process) and
 * already moved into the calling instruction (return address - 1). Any order, duplicates allowed.
 * At level RAW results are empty; else every result has at least one frame. A file that cannot be read, or
 * whose names exceed all bounds, is no error but fallback names. A file with a key that was asked about
 * before is opened only for addresses that are new. Returns 0 or -ENOMEM (then out is not to be used).
 */
int symbols_resolve(struct symbols *symbols, const struct symbol_file *file, const uint64_t *vaddrs, size_t n,
    struct symbol_result *out, struct symbol_facts *facts);

#endif
