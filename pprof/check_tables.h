/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about strings, mappings, functions and locations. */
#ifndef PPROF_CHECK_TABLES_H
#define PPROF_CHECK_TABLES_H

struct checker;

/* Strings come before everything else. */
void check_tables_strings(struct checker *c);
void check_tables(struct checker *c);

/* After the samples, which mark what they use. */
void check_tables_use(struct checker *c);

#endif
