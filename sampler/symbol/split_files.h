/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split debug info: a unit of the program (a skeleton) has lines and addresses, and the unit's functions and
 * inlined calls are in a file of their own (.dwo). libdw opens that file itself, by the path that the program
 * names, and the confined process may open nothing. So the call is trapped, and the trap's handler asks for
 * the file as for any debug file (struct debuginfo_files).
 *
 *	libdw: openat("unit.dwo") --SIGSYS--> "/where/the/program/is/unit.dwo" --> the sampler --> descriptor
 *
 * libdw takes the file only if it has the unit's number. libdw 0.188 knows no .dwp, and later versions look
 * for the .dwp by the path of their descriptor, which the confined process cannot read.
 */
#ifndef SAMPLER_SYMBOL_SPLIT_FILES_H
#define SAMPLER_SYMBOL_SPLIT_FILES_H

#include "sampler/symbol/debuginfo.h"

#include <stdbool.h>

enum { SPLIT_FILES_MAX = 1024 }; /* that are asked for, of one program */

/* Call it in a forked child, before confinement_enter(). Where calls cannot be trapped, no split file is
 * looked for. */
void split_files_prepare(void);

/* From now on files are opened: where the program names them, else in the folder of PATH, the program. Both
 * pointers are borrowed. */
void split_files_begin(const struct debuginfo_files *files, const char *path);

/* Finds the split unit of UNIT, a skeleton. False if there is none. */
bool split_files_find(Dwarf_Die *unit, Dwarf_Die *split);

#endif
