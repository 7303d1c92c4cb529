/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of a check. */
#ifndef PPROF_CHECK_CHECK_REPORT_H
#define PPROF_CHECK_CHECK_REPORT_H

#include <stddef.h>

/* How strict the check is; see the table in check.h. */
enum check_level {
	CHECK_FOREIGN, /* somebody else's profile, of any kind */
	CHECK_STRICT,  /* ours, of any kind */
	CHECK_HEAP,    /* ours: an in-use, peak or leak snapshot */
};

enum check_severity { CHECK_WARNING, CHECK_ERROR };

enum { CHECK_MESSAGE_BYTES = 160, CHECK_FINDINGS_MAX = 100 };

struct check_finding {
	enum check_severity severity;
	char message[CHECK_MESSAGE_BYTES]; /* one line, no full stop */
};

/* The first findings (at most CHECK_FINDINGS_MAX, half of them warnings), and the number of all. */
struct check_report {
	struct check_finding *findings;
	size_t finding_count, capacity;
	size_t error_count, warning_count;
};

#endif
