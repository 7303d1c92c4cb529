/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding mappings, functions and locations: the file's ids, which may be sparse, to the profile's. */
#ifndef PPROF_CODEC_DECODE_TABLES_H
#define PPROF_CODEC_DECODE_TABLES_H

#include "pprof/codec/decoder.h"

decoder_entry decode_mapping;
decoder_entry decode_function;
decoder_entry decode_location; /* after every mapping and function */

#endif
