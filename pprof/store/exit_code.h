/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses of heaptap; `record` otherwise hands back COMMAND's. */
#ifndef PPROF_STORE_EXIT_CODE_H
#define PPROF_STORE_EXIT_CODE_H

#define STATUS_USAGE       2 /* options or installation wrong; COMMAND was not started */
#define STATUS_FAIL_OVER   3 /* more than --fail-over allows, or what --fail-on names */
#define STATUS_CANNOT_EXEC 126
#define STATUS_NOT_FOUND   127
#define STATUS_SIGNAL      128 /* plus the signal's number */

#endif
