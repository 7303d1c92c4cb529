/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/check/check_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

int check_report_add(struct check_report *r, enum check_severity severity, const char *format, va_list args)
{
	struct check_finding *finding;

	if (severity == CHECK_ERROR)
		r->error_count++;
	else
		r->warning_count++;
	/* Warnings get half the room, so that many of them do not hide an error. */
	if (r->finding_count >= (severity == CHECK_ERROR ? CHECK_FINDINGS_MAX : CHECK_FINDINGS_MAX / 2))
		return 0;
	if (array_reserve(&r->findings, &r->capacity, r->finding_count + 1, sizeof(*r->findings)))
		return -ENOMEM;
	finding = &r->findings[r->finding_count++];
	finding->severity = severity;
	vsnprintf(finding->message, sizeof(finding->message), format, args);
	return 0;
}

void check_report_fini(struct check_report *report)
{
	free(report->findings);
	memset(report, 0, sizeof(*report));
}
