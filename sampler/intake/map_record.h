/* SPDX-License-Identifier: Apache-2.0 */
/* The range that a PERF_RECORD_MMAP2 announces, for maps_add(). It points into the record. */
#ifndef SAMPLER_INTAKE_MAP_RECORD_H
#define SAMPLER_INTAKE_MAP_RECORD_H

#include "sampler/perf/record.h"
#include "sampler/unwind/maps.h"

static inline struct map_range map_record_range(const struct record *record)
{
	return (struct map_range){
	    .start = record->start,
	    .len = record->length,
	    .pgoff = record->file_offset,
	    .prot = record->protection,
	    .path = record->path,
	    .build_id = record->build_id_bytes ? record->build_id : NULL,
	    .build_id_len = record->build_id_bytes,
	    .major = record->major,
	    .minor = record->minor,
	    .ino = record->ino,
	};
}

#endif
