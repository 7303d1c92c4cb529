/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about strings, mappings, functions and locations. */
#ifndef PPROF_CHECK_CHECK_TABLES_H
#define PPROF_CHECK_CHECK_TABLES_H

struct checker;

/* Call before everything else. */
void check_tables_strings(struct checker *c);
void check_tables(struct checker *c);

/* Call after check_samples(), which marks the entries that samples use. */
void check_tables_use(struct checker *c);

#endif
