// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * What a function mostly called to allocate, and the callers through which most of its bytes go: ">
 * std::make_shared 33% < on_request < worker". The rules are those of `heaptap report`
 * (pprof/analysis/row_label).
 */
class Callers {
	static LEAST_SHARE = 1 / 3;
	static SHOWN = 3;
	static MOST = 12;

	constructor(graph, measure) {
		this.graph = graph;
		this.value = row => measure.value[row] - (measure.isDiff ? measure.base[row] : 0);
		this.rows = new Map(); /* lists of rows, by the function at their head */
		const path = [];
		for (let row = 0; row < graph.rowCount; row++) {
			if (!this.value(row)) continue;
			const depth = graph.path(row, path);
			if (!depth) continue;
			const head = path[Math.min(graph.rowHead[row], depth - 1)];
			if (!this.rows.has(head)) this.rows.set(head, []);
			this.rows.get(head).push(row);
		}
	}

	/* Groups the rows by the frame that is at the same place in each. Returns the group with the largest
	 * sum: [key, sum, rows]. */
	#largest(rows, keyOf) {
		const groups = new Map();
		for (const row of rows) {
			const key = keyOf(row);
			if (key === undefined) continue;
			const group = groups.get(key) || [key, 0, []];
			group[1] += this.value(row);
			group[2].push(row);
			groups.set(key, group);
		}
		return [...groups.values()].reduce(
			(most, group) => (!most || Math.abs(group[1]) > Math.abs(most[1]) ? group : most),
			null,
		);
	}

	/* A stack from its leaf outwards. A function that calls itself is in it once. */
	#stack(row) {
		const { graph } = this,
			path = [],
			depth = graph.path(row, path),
			head = Math.min(graph.rowHead[row], depth - 1);
		return {
			through: graph.rowHead[row] > 0 ? path[Math.min(graph.rowThrough[row], head)] : undefined,
			outwards: path.slice(head, depth).filter((frame, i, all) => i === 0 || frame !== all[i - 1]),
		};
	}

	/* Is it the name of a function, not an address or a file? */
	#isNamed(frame) {
		const name = this.graph.names[frame];
		return name[0] !== "[" && !name.includes("+0x");
	}

	/* Returns { through: [frame, share] or null, callers: [{ frame, gap }], share }: the share of the
	 * last caller. */
	of(frame) {
		const rows = this.rows.get(frame) || [],
			stacks = new Map(rows.map(row => [row, this.#stack(row)])),
			all = rows.reduce((sum, row) => sum + this.value(row), 0),
			found = { through: null, callers: [], share: 1 };
		if (!all) return found;
		const through = this.#largest(rows, row => stacks.get(row).through);
		if (through && through[0] !== frame && through[1] / all >= Callers.LEAST_SHARE)
			found.through = [through[0], through[1] / all];
		let left = rows,
			last = 0;
		for (let at = 1; at <= Callers.MOST && found.callers.length < Callers.SHOWN; at++) {
			const caller = this.#largest(left, row => stacks.get(row).outwards[at]);
			if (!caller || !(caller[1] / all >= Callers.LEAST_SHARE)) break;
			left = caller[2];
			if (!this.#isNamed(caller[0])) continue;
			found.callers.push({ frame: caller[0], gap: at > last + 1 });
			found.share = caller[1] / all;
			last = at;
		}
		return found;
	}

	/* The same as text: "> std::make_shared 33%  < on_request < worker 80%" */
	text(frame) {
		const { through, callers, share } = this.of(frame),
			{ labels } = this.graph;
		const part = share => (share < 0.995 ? " " + Math.round(100 * share) + "%" : "");
		return [
			through ? "> " + labels[through[0]] + part(through[1]) : "",
			callers.map(({ frame, gap }) => (gap ? ".. " : "< ") + labels[frame]).join(" ") +
				(callers.length ? part(share) : ""),
		]
			.filter(Boolean)
			.join("  ");
	}
}
