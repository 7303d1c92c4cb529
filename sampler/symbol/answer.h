/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of questions about a file's addresses and of their answers, shared by symbol.h, which asks,
 * symsource.h, which reads files, and symcodec.h, which stores answers.
 */
#ifndef SAMPLER_SYMBOL_ANSWER_H
#define SAMPLER_SYMBOL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much is looked up, in descending order. */
enum symbol_detail {
	SYMBOL_FULL,      /* functions, inlined calls, files, lines */
	SYMBOL_FUNCTIONS, /* functions from symbol tables only: never opens DWARF */
	SYMBOL_RAW,       /* addresses and build ids only: results have no frames, the reader symbolizes */
};

/* The best source of names in one file, in ascending order of quality. */
enum symbol_source {
	SYMBOL_NONE,      /* every name is the fallback */
	SYMBOL_DYNSYM,    /* exported functions only */
	SYMBOL_MINIDEBUG, /* .gnu_debugdata */
	SYMBOL_SYMTAB,    /* .symtab of the file or of its debug file */
	SYMBOL_DWARF,
};

struct symbol_options {
	enum symbol_detail detail;
	/*
	 * Folder of the disk cache, created when missing (symcache_folder() knows the usual one); NULL:
	 * none.
	 */
	const char *cache_folder;
	uint64_t cache_limit_bytes; /* of the whole folder; 0: SYMCACHE_LIMIT_BYTES */
	const char *debug_root;     /* where separate debug files are kept; NULL: /usr/lib/debug */
	bool debuginfod;            /* fetch missing debug files from the servers in $DEBUGINFOD_URLS */
};

/* One loaded file. The caller owns all members. `fd` is read with pread and mmap; its offset is not used. */
struct symbol_file {
	int fd;
	const char *path; /* as the target saw it; for fallback names and to find the debug file beside it */
	const uint8_t *build_id; /* NULL: none, and nothing of this file is cached on disk */
	size_t build_id_bytes;
	/* identifies the file among all files of one struct symbols; NULL: not identified */
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

enum { SYMBOL_FRAMES_MAX = 256 }; /* per address */

/* The innermost frame comes first. Frames and strings live as long as the struct symbols that made them. */
struct symbol_result {
	const struct symbol_frame *frames;
	uint32_t frame_count;
	bool known; /* false: no name was found; the only frame is the fallback `libfoo.so.1+0x1a2b` */
};

/* What one file contains, as the disk cache keeps it; a single address may still have no name. */
struct symbol_facts {
	enum symbol_source source;
	bool has_lines;
	bool has_inlines;
	bool debug_file; /* the names come (also) from a separate debug file */
	/* some units have their inlined calls in a .dwp file, or in .dwo files that were not found */
	bool split;
};

#endif
