/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap report: shows a profile as text on a terminal (or JSON): a header and several tables; or a call
 * tree; or the stacks of blocks that were never freed; or a picture of the snapshots over time.
 */
#ifndef SAMPLER_CMD_REPORT_REPORT_H
#define SAMPLER_CMD_REPORT_REPORT_H

#include "pprof/text/json.h"
#include "sampler/cmd/report/profile_input.h"
#include "sampler/cmd/report/report_answer.h"
#include "sampler/linux/screen.h"

/* The command. Returns the exit status. */
int report_run(struct options *options);

/* Prints what the profiles are of, and their sums; verbose: also how the samples were taken. */
void report_header(const struct screen *screen, const struct profile_input *input, bool is_verbose);

/* Its parts; each returns 0 or an exit status after a line that says why. */
int report_tree(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct read_options *read);
int report_leaks(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct options *options);
int report_growth(const struct screen *screen, const struct profile_input *input, const struct growth *growth,
    int32_t rows);
int report_timeline(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct read_options *read);
int report_json(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct read_options *read);

/* Parts of the JSON output. _head begins the outermost object, which the caller ends, with the answer and the
 * profile in the column that is shown. _growth writes growth as members; nothing if there are too few
 * snapshots. */
void report_json_head(
    struct json *json, const struct profile_input *input, const struct report_answer *answer, size_t column);
void report_json_growth(
    struct json *json, const struct profile_input *input, const struct report_answer *answer);

/* Prints the frame in at most `room` columns, with "main.c:12" behind the name if lines are told apart.
 * Returns the columns that it took. */
int report_frame(const struct screen *screen, const struct traces *traces, uint32_t frame, int room);

/* Prints the frame, `used` columns from the left, and its main callers if there is room: "zmalloc < sdsnew <
 * setCommand 71%". What the frame called comes between: "load > std::vector::resize  < main". values: as for
 * callers_find(). */
void report_frame_callers(
    const struct screen *screen, const struct traces *traces, const double *values, uint32_t frame, int used);

/* The heading of a table's last column: "function > callee < callers". */
const char *report_columns(const struct read_options *read);

/* "bytes in use": the heading of a kind. */
const char *report_kind(const struct traces *traces, enum measure_kind kind);

#endif
