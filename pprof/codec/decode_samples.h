/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding samples: stacks, values and labels. */
#ifndef PPROF_CODEC_DECODE_SAMPLES_H
#define PPROF_CODEC_DECODE_SAMPLES_H

#include "pprof/codec/decoder.h"

decoder_entry decode_sample; /* after every location and sample type */

#endif
