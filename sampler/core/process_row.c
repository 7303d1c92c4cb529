/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/process_row.h"

#include "pprof/text/clock.h"
#include "sampler/linux/proc.h"
#include "sampler/write/snapshot_series.h"

#include <math.h>

uint64_t process_row_resident_bytes(pid_t pid)
{
	char text[PROC_STATUS_BYTES];

	if (proc_read(pid, "status", text, sizeof(text)) <= 0)
		return 0;
	return proc_status_number(text, "\nVmRSS:", 10, 0) << 10;
}

static int64_t unix_ns_of(const struct trend_point *point)
{
	return clock_unix_ns() - (int64_t)(clock_now_ns() - (uint64_t)(point->time_s * 1e9));
}

static void fill_growth(struct control_growth *growth, struct trend_series *series)
{
	const struct trend *trend = trend_series_find(series);
	const struct trend_point *points = series->series.points;

	if (!trend)
		return;
	growth->kind = trend_kind_name(trend->kind);
	if (trend->kind == TREND_NONE)
		return;
	growth->bytes = trend->bytes;
	growth->bytes_error = sqrt(fmax(trend->variance, 0));
	growth->since_unix_ns = unix_ns_of(&points[trend->since]);
	growth->until_unix_ns = unix_ns_of(&points[trend->until]);
	if (trend->kind != TREND_GROWS)
		return;
	growth->bytes_per_hour = trend->bytes_per_s * 3600;
	growth->bytes_per_hour_error = sqrt(fmax(trend->bytes_per_s_variance, 0)) * 3600;
}

static size_t fill_losses(const struct process *process, struct control_loss losses[PROCESS_ROW_LOSSES])
{
	const struct region_place *place = region_place(process->run->region, process->place);
	const uint64_t counted = process_samples(process), arrived = heap_total(process->heap).samples;
	size_t count = 0;

	if (process->run->life.state != RUN_ADOPTING && counted > arrived)
		losses[count++] = (struct control_loss){"stack", counted - arrived};
	for (uint32_t i = 0; i < REGION_LOSS_COUNT; i++) {
		const struct tally lost = region_read_tally(&place->lost[i]);

		if (lost.samples)
			losses[count++] =
			    (struct control_loss){region_loss_name((enum region_loss)i), lost.samples};
	}
	if (process->counters.before_restart)
		losses[count++] =
		    (struct control_loss){"stack before restart", process->counters.before_restart};
	return count;
}

void process_row_fill(struct control_process *row, struct control_loss losses[PROCESS_ROW_LOSSES],
    const struct process *process)
{
	const struct region_place *place = region_place(process->run->region, process->place);
	const struct trend_point now = snapshot_series_trend_point(place, clock_now_ns());
	const struct tally live = region_read_tally(&place->live);

	row->inuse_bytes = now.inuse_bytes;
	row->inuse_bytes_error = sqrt(now.inuse_variance);
	row->inuse_objects = fmax((double)(int64_t)live.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT), 0);
	row->alloc_bytes = now.allocated_bytes;
	row->samples = process_samples(process);
	row->losses = losses;
	row->loss_count = fill_losses(process, losses);
	if (process->target.series)
		fill_growth(&row->growth, &process->target.series->heap.trend);
}
