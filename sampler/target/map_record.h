/* SPDX-License-Identifier: Apache-2.0 */
/* The range that a PERF_RECORD_MMAP2 announces, for maps_add(). It points into the record. */
#ifndef SAMPLER_TARGET_MAP_RECORD_H
#define SAMPLER_TARGET_MAP_RECORD_H

#include "sampler/perf/record.h"
#include "sampler/unwind/maps.h"

struct map_range map_record_range(const struct record *record);

#endif
