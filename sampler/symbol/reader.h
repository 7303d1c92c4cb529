/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that reads one ELF file: a child without privileges (linux/confinement), made for the file and
 * ended with it. A file that makes libdw crash or run for ever costs only its own names. A file that makes
 * libdw execute code controls a process that can open nothing, reach no other process, and write nothing but
 * its answer. The child has no reason to sleep while we wait for it: a child that sleeps is given up.
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
 * What the child says is hostile. A path is opened only if it leads to a regular ELF file that is no core
 * file. In addition, either everybody may read that file, or the owner of the first file owns it. symcodec
 * checks the bytes of the answer.
 */
#ifndef SAMPLER_SYMBOL_READER_H
#define SAMPLER_SYMBOL_READER_H

#include "sampler/symbol/answer.h"

#include <sys/types.h>

struct reader {
	pid_t pid;
	int fd;              /* the socket to it */
	unsigned int asleep; /* times that we found it asleep while we waited */
	const struct symbol_file *file;
	const struct symbol_options *options;
};

/* Call all four in this order; after an error call only reader_end. Both pointers are borrowed until then.
 * Returns 0, -ENOEXEC if the file has no descriptor, or -EAGAIN if no process can be made. */
int reader_start(struct reader *reader, const struct symbol_file *file, const struct symbol_options *options);

/* Waits until the files are open. Returns 0, -ENOEXEC if the file is not ELF, -EPIPE if the child has died,
 * or -EPROTO if its messages make no sense. */
int reader_source(struct reader *reader, uint64_t *source_id, struct symbol_facts *facts);

/* The answer for n ascending addresses, as symcodec's bytes in memory from malloc, which the caller frees.
 * Returns 0, -EPIPE, -EPROTO or -ENOMEM (here or in the child). */
int reader_answer(
    struct reader *reader, const uint64_t *vaddrs, size_t n, uint8_t **bytes, size_t *byte_count);

void reader_end(struct reader *reader);

#endif
