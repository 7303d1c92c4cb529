/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/target/map_record.h"

struct map_range map_record_range(const struct record *record)
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
