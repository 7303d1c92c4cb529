/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that every known reader accepts a profile and reads the same from it.
 *
 * Works on the raw bytes of a .pb.gz file, so it sees what a decoder would hide. Each rule exists because a
 * reader was seen to fail (google/pprof, go tool pprof, Pyroscope, Alloy, Parca, Perfetto, speedscope,
 * protoc); the message says what is wrong and, where it is not obvious, for which reader. The severity of a
 * broken rule depends on the level:
 *
 *	rule broken			CHECK_FOREIGN	CHECK_STRICT	CHECK_HEAP
 *	the reference reader rejects	error		error		error
 *	another reader rejects or errs	warning		error		error
 *	not as we write profiles	-		error		error
 *	advice (size, missing details)	-		warning		warning
 *	not a heap snapshot of ours	-		-		error
 *
 * The input may be hostile: time and memory are linear in the uncompressed size, messages never quote the
 * file.
 */
#ifndef PPROF_CHECK_CHECK_H
#define PPROF_CHECK_CHECK_H

#include "pprof/check/check_report.h"

/* Limit on memory, enough for every real profile seen. */
#define CHECK_MAX_BYTES ((size_t)1 << 30)

/* Fills in report, which the caller frees with check_report_fini(). 0, whatever was found; -ENOMEM,
 * -EOVERFLOW or -EFBIG (beyond max_bytes of memory) if the check could not be finished. */
int check_profile(
    const void *data, size_t len, enum check_level level, size_t max_bytes, struct check_report *report);

void check_report_fini(struct check_report *report);

#endif
