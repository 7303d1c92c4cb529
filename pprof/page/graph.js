// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * A profile, or the difference of two, as pprof/export/graph writes it:
 *
 *	frames	names, labels (short names), file, module, line and role, by frame: here as frames.js has them
 *	nodes	the call tree: frame and parent of each node, parents before children, node 0 is the whole
 *	rows	what was measured: the node where a stack ends, thread and age of its blocks
 *	kinds	for each sample type a value by row, with error and number of samples
 *
 * In a difference a kind has the values of both sides, and the error is that of the change.
 */
class Graph {
	constructor(data) {
		const rows = data.rows,
			frames = (this.frames = new Frames(data));
		this.title = data.title;
		this.about = data.about || {};
		this.answer = data.answer || null;
		this.isDiff = Boolean(data.diff);
		this.sameProcess = Boolean(data.diff && data.diff.same_process);
		this.normalized = Boolean(data.diff && data.diff.normalized);
		for (const name of ["names", "labels", "files", "modules", "lines", "roles", "versions"])
			this[name] = frames[name];
		this.whole = {
			frame: Int32Array.from(data.nodes.frame, i => (i < 0 ? -1 : frames.of[i])),
			parent: Int32Array.from(data.nodes.parent),
			rowNode: Int32Array.from(rows.node),
		};
		this.rowHead = Int32Array.from(rows.head);
		this.rowThrough = Int32Array.from(rows.through || rows.head.map(() => 0));
		this.rowThread = rows.thread ? Int32Array.from(rows.thread) : null;
		this.rowAge = rows.age ? Int32Array.from(rows.age) : null;
		this.threads = data.threads || [];
		this.ages = data.ages || [];
		this.rowCount = rows.node.length;
		this.kinds = data.kinds.map(kind => this.#kind(kind));
		this.rank = this.#ranks();
		this.showStarts(false);
	}

	/* The call tree, with the frames that start programs and threads or without; the frame that heads a
	 * row stays. */
	showStarts(shown) {
		if (this.starts === shown) return;
		const { frame, parent, rowNode } = this.whole,
			isStart = shown ? new Uint8Array(parent.length) : starts.find(frame, parent, this.frames),
			grower = new Grower(this.names.length),
			made = new Int32Array(parent.length).fill(-1),
			path = [];
		made[0] = 0;
		this.starts = shown;
		this.hasStarts = shown ? this.hasStarts : isStart.includes(1);
		this.rowNode = rowNode.map((end, row) => {
			let node = end,
				kept = false;
			path.length = 0;
			for (; made[node] < 0; node = parent[node]) {
				if (isStart[node] && path.length > this.rowHead[row]) break;
				kept ||= isStart[node] === 1;
				path.push(node);
			}
			let at = made[node] < 0 ? 0 : made[node];
			for (const below of path.reverse()) {
				at = grower.below(at, frame[below]);
				if (!kept) made[below] = at;
			}
			return at;
		});
		this.frame = grower.frame.slice(0, grower.count);
		this.parent = grower.parent.slice(0, grower.count);
	}

	#kind(kind) {
		const zeros = () => new Float64Array(this.rowCount);
		return {
			name: kind.name,
			unit: kind.unit,
			known: kind.error !== null /* are errors known? */,
			value: Float64Array.from(kind.value),
			base: kind.base ? Float64Array.from(kind.base) : zeros(),
			variance:
				kind.error && kind.error.length ? Float64Array.from(kind.error, e => e * e) : zeros(),
			samples: kind.samples && kind.samples.length ? Float64Array.from(kind.samples) : zeros(),
			all: kind.all,
		};
	}

	/* Siblings are drawn in the order of their names, which is the same at every moment. */
	#ranks() {
		const order = this.labels.map((_, i) => i),
			rank = new Int32Array(order.length);
		const collator = new Intl.Collator("en");
		order.sort((a, b) => collator.compare(this.labels[a], this.labels[b]) || a - b);
		order.forEach((frame, i) => {
			rank[frame] = i;
		});
		return rank;
	}

	/* Finds a function by its name or by a version of the name. -1: there is none. */
	frameNamed(name) {
		const at = this.names.indexOf(name);
		return at >= 0 ? at : this.versions.findIndex(versions => versions.includes(name));
	}

	place(frame) {
		const line = this.lines && this.lines[frame] > 0 ? ":" + this.lines[frame] : "";
		return this.files[frame] ? this.files[frame] + line : "";
	}

	/* Which frames a text matches, a regular expression or part of a name; null if it is empty. As the
	 * command line does, it looks at names and source files. An expression that is not one is `wrong`. */
	match(text) {
		if (!text) return null;
		let regex,
			wrong = "";
		try {
			regex = new RegExp(text, "i");
		} catch (error) {
			wrong = error.message;
			regex = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
		}
		const frames = Uint8Array.from(this.names, (name, i) =>
			regex.test(name) ||
			regex.test(this.labels[i]) ||
			regex.test(this.files[i]) ||
			this.versions[i].some(version => regex.test(version))
				? 1
				: 0,
		);
		return { frames, wrong };
	}

	/* Does a frame of the set occur in the stack of a row? By node, parents first. */
	marks(frames) {
		const marked = new Uint8Array(this.parent.length);
		for (let node = 1; node < marked.length; node++)
			marked[node] = marked[this.parent[node]] | frames[this.frame[node]];
		return marked;
	}

	/* The rows that the filters select: a mask with 1 for each of them, or null for all rows. */
	select({ only, without, thread, age }) {
		const mask = new Uint8Array(this.rowCount).fill(1);
		const drop = test => {
			for (let row = 0; row < mask.length; row++) if (test(row)) mask[row] = 0;
		};
		const focus = this.match(only),
			ignore = this.match(without);
		if (focus) {
			const marked = this.marks(focus.frames);
			drop(row => !marked[this.rowNode[row]]);
		}
		if (ignore) {
			const marked = this.marks(ignore.frames);
			drop(row => marked[this.rowNode[row]]);
		}
		if (thread >= 0 && this.rowThread) drop(row => this.rowThread[row] !== thread);
		if (age >= 0 && this.rowAge) drop(row => this.rowAge[row] !== age);
		return focus || ignore || thread >= 0 || age >= 0 ? mask : null;
	}

	/*
	 * What is drawn and added up: the numbers of one kind, by row. `width` is what makes a box wide: of a
	 * difference the new values, the old ones, or the larger of both, which also shows what has vanished.
	 */
	measure(number, mask, wide) {
		const kind = this.kinds[number],
			keep = mask ? array => array.map((v, row) => (mask[row] ? v : 0)) : a => a;
		const value = keep(kind.value),
			base = keep(kind.base);
		let width = value;
		if (this.isDiff && wide === "base") width = base;
		else if (this.isDiff && wide === "both") width = value.map((v, row) => Math.max(v, base[row]));
		return {
			kind,
			unit: kind.unit,
			known: kind.known,
			isDiff: this.isDiff,
			value,
			base,
			variance: keep(kind.variance),
			samples: keep(kind.samples),
			width: width.map(v => Math.max(0, v)),
		};
	}

	/* Writes the frames of a row, from the leaf outwards, into `path`. Returns how many. */
	path(row, path) {
		let depth = 0;
		for (let node = this.rowNode[row]; node > 0; node = this.parent[node])
			path[depth++] = this.frame[node];
		return depth;
	}

	/*
	 * Totals by function, as the table shows them: `flat` of the rows that are about it (their head),
	 * `cum` of all rows that it is in, once for each however often it recurs.
	 */
	functions(measure) {
		const count = this.names.length,
			path = [],
			seen = new Int32Array(count).fill(-1);
		const sums = () => ({
			value: new Float64Array(count),
			base: new Float64Array(count),
			variance: new Float64Array(count),
			samples: new Float64Array(count),
		});
		const flat = sums(),
			cum = sums();
		const add = (to, frame, row) => {
			to.value[frame] += measure.value[row];
			to.base[frame] += measure.base[row];
			to.variance[frame] += measure.variance[row];
			to.samples[frame] += measure.samples[row];
		};
		for (let row = 0; row < this.rowCount; row++) {
			if (!measure.value[row] && !measure.base[row]) continue;
			const depth = this.path(row, path);
			if (depth) add(flat, path[Math.min(this.rowHead[row], depth - 1)], row);
			for (let i = 0; i < depth; i++) {
				if (seen[path[i]] === row) continue;
				seen[path[i]] = row;
				add(cum, path[i], row);
			}
		}
		return { flat, cum };
	}
}

/*
 * Is a change more than chance? As on the command line one standard error is the unit; what is within two of
 * them is grey on the page.
 */
const verdict = {
	ERRORS: 2,
	of(base, value, variance, known) {
		const change = value - base;
		const sure =
			known && change * change > verdict.ERRORS * verdict.ERRORS * variance && change !== 0;
		return {
			change,
			sure,
			mark:
				change === 0
					? "same"
					: base === 0
						? "new"
						: value === 0
							? "vanished"
							: change > 0
								? "more"
								: "less",
		};
	},
	/* In words, since many people cannot tell the colours apart. */
	text({ mark, sure, change }, known) {
		if (mark === "same") return "unchanged";
		const what =
			mark === "new" ? "new" : mark === "vanished" ? "vanished" : change > 0 ? "grew" : "shrank";
		return what + (!known ? "" : sure ? ", more than chance" : ", within chance");
	},
};
