/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of a slot (proto/region.h): its owner writes, makes live, frees and writes again while the sampler reads
 * between two equal loads of the word. A freed block is whole still, with the number of its free, which is stored
 * before the word says so and not where anything of a live block is; and that of the ring of frees, whose entries two writers may want at a time. An
 * owner may end anywhere. Sequentially consistent.
 *
 *   spin -a slot.pml && gcc -O2 -o pan pan.c && ./pan -m100000
 */
#define WRITING 1
#define LIVE    2
#define FREED   3
#define FREE_ORDER 100 /* the number of block n's free is n + this */
#define FREE_BUSY 255

byte seq, state; /* the word: one store writes both */
byte size, period, freed_order;
bool dead;

proctype owner() {
	byte n;
	for (n : 1 .. 3) {
		atomic { seq = n; state = WRITING };
		if :: dead = true; goto end :: skip fi;
		size = n;
		if :: dead = true; goto end :: skip fi;
		period = n;
		atomic { seq = n; state = LIVE };
		if :: dead = true; goto end :: skip fi;
		freed_order = n + FREE_ORDER;
		if :: dead = true; goto end :: skip fi;
		atomic { state = FREED }
	}
end:	skip
}

proctype reader() {
	byte before_seq, before_state, got_size, got_period, got_order, times;
	for (times : 1 .. 2) {
		atomic { before_seq = seq; before_state = state };
		got_size = size;
		got_period = period;
		got_order = freed_order;
		atomic {
			if
			:: before_state >= LIVE && seq == before_seq && state == before_state ->
				assert(got_size == before_seq && got_period == before_seq);
				assert(before_state == LIVE || got_order == before_seq + FREE_ORDER)
			:: else
			fi
		}
	}
}

/* The ring: one entry, wanted by the writers of numbers 1 and 2 (a ring apart). */
byte word, field_one, field_two;

proctype writer(byte number) {
	byte old;
	bool ok = false;
	old = word;
	if
	:: old == FREE_BUSY || old > number -> goto end
	:: else
	fi;
	atomic { if :: word == old -> word = FREE_BUSY; ok = true :: else fi };
	if :: !ok -> goto end :: else fi;
	field_one = number;
	field_two = number;
	word = number;
end:	skip
}

proctype ring_reader(byte number) {
	byte one, two;
	if
	:: word == number ->
		one = field_one;
		two = field_two;
		atomic { if :: word == number -> assert(one == number && two == number) :: else fi }
	:: else
	fi
}

init {
	atomic { run owner(); run reader() };
	_nr_pr == 1;
	atomic { run writer(1); run writer(2); run ring_reader(1); run ring_reader(2) };
	_nr_pr == 1;
	assert(word != FREE_BUSY && field_one == word && field_two == word)
}
