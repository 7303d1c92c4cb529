/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/progress.h"

#include "pprof/text/log_line.h"

#include <inttypes.h>

#define ALIVE_NS UINT64_C(1000000000)
#define FIRST_NS UINT64_C(2000000000) /* after COMMAND's end, then at double the time, and so on */

bool progress_begin(struct progress *progress, uint64_t now_ns)
{
	if (progress->ended_ns)
		return false;
	*progress = (struct progress){.ended_ns = now_ns, .after_ns = FIRST_NS};
	return true;
}

bool progress_is_alive(struct progress *progress, uint64_t now_ns)
{
	if (now_ns - progress->alive_ns < ALIVE_NS)
		return false;
	progress->alive_ns = now_ns;
	return true;
}

void progress_tell(struct progress *progress, const struct scheduler *scheduler, uint64_t now_ns)
{
	uint64_t written, ended;

	if (now_ns - progress->ended_ns < progress->after_ns)
		return;
	progress->after_ns *= 2;
	scheduler_progress(scheduler, &written, &ended);
	if (written < ended)
		log_line("writing %" PRIu64 " of %" PRIu64 " profiles", written + 1, ended);
}
