/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that reads one ELF file: a child without privileges (linux/confinement), made for the file
 * and ended with it. A file that makes libdw crash or run for ever costs the names of that file, and a
 * file that makes it execute code gets into a process that can open nothing, reach no other process and
 * write nothing but its answer. While we wait for it, it has no reason to sleep: if it does, it is given up.
 *
 *	asks                                         reads
 *	reader_start     the file --------------->   heaptap-symbols: symsource_open
 *	                  <- "open PATH" ---------   debug files are opened here, by whoever asks
 *	                 descriptor or error ---->
 *	reader_source    <- which files it has ---
 *	reader_answer    addresses -------------->   symsource_resolve
 *	                  <- symcodec's bytes -----
 *	reader_end
 *
 * What the child says is hostile: a path is opened only if it is a regular ELF file, no core, that
 * everybody may read or that belongs to the owner of the first file; the bytes are symcodec's, which
 * checks them.
 */
#ifndef SAMPLER_SYMBOL_READER_H
#define SAMPLER_SYMBOL_READER_H

#include "sampler/symbol/answer.h"

#include <sys/types.h>

struct reader {
	pid_t pid;
	int fd;              /* the socket to it */
	unsigned int asleep; /* looks at it, while we waited, that found it so */
	const struct symbol_file *file;
	const struct symbol_options *options;
};

/* All four in this order; after an error only reader_end. Both pointers are borrowed until then. 0;
 * -ENOEXEC: no file; -EAGAIN: no process to be had. */
int reader_start(struct reader *reader, const struct symbol_file *file, const struct symbol_options *options);

/* Waits until the files are open. 0; -ENOEXEC: not ELF; -EPIPE: the child has died; -EPROTO: it talks
 * nonsense. */
int reader_source(struct reader *reader, uint64_t *source_id, struct symbol_facts *facts);

/* The answer for n ascending addresses as symcodec's bytes, malloc'd for the caller. 0, -EPIPE, -EPROTO or
 * -ENOMEM, which may be the child's. */
int reader_answer(
    struct reader *reader, const uint64_t *vaddrs, size_t n, uint8_t **bytes, size_t *byte_count);

void reader_end(struct reader *reader);

#endif
