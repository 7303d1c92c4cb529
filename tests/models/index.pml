/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of the index' keys (preload/live.c): empty -> busy -> address -> busy -> empty, by compare-and-swap.
 * Two threads put and take an address each, a third frees one of them too (the program's bug), a visitor changes or
 * drops entries as a forked child's claim does; any of them may end in mid-way. Sequentially consistent, one window.
 *
 *   spin -a index.pml && gcc -O2 -o pan pan.c && ./pan -m100000
 */
#define EMPTY 0
#define BUSY  1
#define KEYS  2

byte key[KEYS], entry[KEYS]; /* entry: the address that it describes; + 10 once visited */
byte won[4];                 /* takes of address 2 and 3 */
byte put[4], dropped[4], dead;

inline maybe_die() {
	if
	:: dead < 1 -> dead++; goto end
	:: skip
	fi
}

inline do_put(address) {
	i = 0;
	do
	:: i == KEYS -> break
	:: i < KEYS ->
		ok = false;
		atomic { if :: key[i] == EMPTY -> key[i] = BUSY; ok = true :: else fi };
		if
		:: ok ->
			maybe_die();
			entry[i] = address;
			maybe_die();
			atomic { key[i] = address; put[address]++ };
			break
		:: else -> i++
		fi
	od
}

inline do_take(address) {
	i = 0;
	do
	:: i == KEYS -> break
	:: i < KEYS ->
		ok = false;
		atomic { if :: key[i] == address -> key[i] = BUSY; ok = true :: else fi };
		if
		:: ok ->
			assert(entry[i] == address || entry[i] == address + 10);
			maybe_die();
			atomic { key[i] = EMPTY; won[address]++ };
			break
		:: else -> i++
		fi
	od
}

proctype owner(byte address) {
	byte i, n;
	bool ok;
	for (n : 1 .. 2) {
		do_put(address);
		do_take(address)
	}
end:	skip
}

proctype also_frees(byte address) {
	byte i;
	bool ok;
	do_take(address);
end:	skip
}

proctype visitor() {
	byte i, found;
	bool ok;
	i = 0;
	do
	:: i == KEYS -> break
	:: i < KEYS ->
		found = key[i];
		ok = false;
		if
		:: found > BUSY -> atomic { if :: key[i] == found -> key[i] = BUSY; ok = true :: else fi }
		:: else
		fi;
		if
		:: ok ->
			assert(entry[i] == found || entry[i] == found + 10);
			entry[i] = found + 10;
			maybe_die();
			if
			:: key[i] = found
			:: atomic { key[i] = EMPTY; dropped[found]++ }
			fi
		:: else
		fi;
		i++
	od;
end:	skip
}

init {
	atomic { run owner(2); run owner(3); run also_frees(2); run visitor() };
	_nr_pr == 1;
	/* Nothing is taken twice, and nothing is invented. */
	assert(won[2] + dropped[2] <= put[2]);
	assert(won[3] + dropped[3] <= put[3]);
	/* One death leaves at most one key busy. What a visitor held while its owner looked stays until the address comes
	 * again: REGION_LOSS_STALE. */
	byte i = 0, busy = 0;
	do
	:: i == KEYS -> break
	:: i < KEYS -> if :: key[i] == BUSY -> busy++ :: else fi; i++
	od;
	assert(busy <= dead)
}
