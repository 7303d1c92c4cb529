/* SPDX-License-Identifier: Apache-2.0 */
/* `--dry-run`: what would be sent, on standard output. */
#ifndef PUSH_DRY_RUN_H
#define PUSH_DRY_RUN_H

struct delivery;
struct target;

void dry_run_print(const struct target *target, const char *path, const struct delivery *delivery);

#endif
