/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/doctor/doctor_resident.h"

#include "sampler/loader/preload_library.h"
#include "sampler/snapshot/resident_text.h"
#include "sampler/terminal/amount.h"

#include <string.h>

/* The user has asked for it, so it may take longer than while recording; but it holds the process'
 * mmap_lock. */
enum { READING_MAX_NS = 1000 * 1000000 };

void doctor_resident_say(struct findings *findings, pid_t pid)
{
	const struct resident_facts facts = {.library = PRELOAD_LIBRARY_NAME};
	struct resident_reading reading = {0};
	char rows[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES], amount[AMOUNT_BYTES];

	int error = resident_read(&reading.parts, pid, &facts, READING_MAX_NS);
	if (error) {
		finding_say(findings, FINDING_NOTE, NULL,
		    "what its resident memory consists of cannot be read: %s", strerror(-error));
		return;
	}
	finding_say(findings, FINDING_GOOD, NULL,
	    "it has %s resident (%s):", amount_bytes((double)reading.parts.total_bytes, amount),
	    reading.parts.counters ? "the kernel's counters: it is too large to look at each mapping"
	                           : "the sum of its mappings in smaps");
	size_t count = resident_text_rows(&reading, false, rows);
	for (size_t i = 0; i < count; i++)
		fprintf(findings->out, "      %s\n", rows[i]);
}
