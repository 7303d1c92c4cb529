/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding a file's string table, its single fields (time, period, ...), comments and sample types. */
#ifndef PPROF_CODEC_DECODE_HEADER_H
#define PPROF_CODEC_DECODE_HEADER_H

#include "pprof/codec/decoder.h"

/* The first pass over the file: keeps strings and single fields; tables are left for later. */
decoder_entry decode_top_level;

/* Once every string is known: gives the profile what decode_top_level() kept. */
enum decode_error decode_header(struct decoder *d);

decoder_entry decode_comment;
decoder_entry decode_sample_type;

#endif
