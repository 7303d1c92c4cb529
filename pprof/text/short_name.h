/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short form of a function's name, for people: without template arguments, parameters and return type.
 *
 *	std::map<int, std::vector<char> >::operator[]		std::map::operator[]
 *	void app::load<int>(int const&)				app::load
 *	f(int)::{lambda(int)#1}::operator()<int>(int) const	f::{lambda(int)#1}::operator()
 *	<alloc::vec::Vec<u8> as core::clone::Clone>::clone	<alloc::vec::Vec as core::clone::Clone>::clone
 *	JS:*loadUsers /srv/load.js:3:1				loadUsers /srv/load.js:3:1
 *	void java.util.zip.Inflater.<init>(boolean)		java.util.zip.Inflater.<init>
 *
 * What is part of the name stays: operators with < and > in them, (anonymous namespace), lambdas, Rust's
 * <T as Trait>, {{closure}} and <impl T for U>. Names of other languages stay as they are, and so does a name
 * whose brackets do not match: it may be anything.
 */
#ifndef PPROF_TEXT_SHORT_NAME_H
#define PPROF_TEXT_SHORT_NAME_H

#include <stddef.h>

/* Longer names are not looked at, so that the time is bounded. */
enum { SHORT_NAME_MOST_BYTES = 1 << 16 };

/* text has room for length + 1 bytes and does not overlap name. Returns the length of the short form, without
 * its final NUL: never more than length, and never 0 unless length is. */
size_t short_name(const char *name, size_t length, char *text);

#endif
