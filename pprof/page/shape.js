// SPDX-License-Identifier: Apache-2.0
"use strict";

/* Makes a tree from paths: the node below another one with a given frame, found or made. Open addressing over
 * typed arrays, because a Map is several times slower with 100,000 nodes. */
class Grower {
	constructor(frameCount) {
		this.frameCount = frameCount + 1;
		this.count = 1;
		this.frame = new Int32Array(1024).fill(-1);
		this.parent = new Int32Array(1024).fill(-1);
		this.slots = new Int32Array(4096);
	}

	#hash(parent, frame, mask) {
		return ((Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame + 1, 0x85ebca6b)) >>> 7) & mask;
	}

	#grow() {
		const twice = array => {
			const next = new Int32Array(array.length * 2);
			next.set(array);
			return next;
		};
		this.frame = twice(this.frame);
		this.parent = twice(this.parent);
		this.slots = new Int32Array(this.frame.length * 4);
		const mask = this.slots.length - 1;
		for (let node = 1; node < this.count; node++) {
			let slot = this.#hash(this.parent[node], this.frame[node], mask);
			while (this.slots[slot]) slot = (slot + 1) & mask;
			this.slots[slot] = node;
		}
	}

	below(parent, frame) {
		if (this.count === this.frame.length) this.#grow();
		const mask = this.slots.length - 1;
		let slot = this.#hash(parent, frame, mask);
		for (; this.slots[slot]; slot = (slot + 1) & mask) {
			const node = this.slots[slot];
			if (this.parent[node] === parent && this.frame[node] === frame) return node;
		}
		this.slots[slot] = this.count;
		this.frame[this.count] = frame;
		this.parent[this.count] = parent;
		return this.count++;
	}
}

/*
 * A tree ready to be drawn: sums by node, and for each level of it the nodes from left to right.
 *
 *	start, width	the box of a node, in the unit of the measure
 *	levels		nodes by depth, from left to right; narrow ones too, the drawing skips them
 *	starts, ends	of the nodes of each level, side by side in memory: that is what drawing looks through
 *	first, end	the rows of a node and of all below it: rows[first .. end)
 *
 * Nothing here recurses: stacks may be as deep as a profile is long.
 */
class Shape {
	constructor(graph, measure, tree) {
		Object.assign(this, {
			graph,
			measure,
			frame: tree.frame,
			parent: tree.parent,
			rowNode: tree.rowNode,
		});
		this.count = tree.parent.length;
		this.rootFrame = tree.rootFrame === undefined ? -1 : tree.rootFrame;
		this.#sum();
		this.#order();
		this.#place();
		this.#sortRows();
	}

	/* The call tree as it is. */
	static plain(graph, measure) {
		return new Shape(graph, measure, {
			frame: graph.frame,
			parent: graph.parent,
			rowNode: graph.rowNode,
		});
	}

	/* From what allocates outwards. */
	static inverted(graph, measure) {
		return Shape.#grow(graph, measure, -1, (path, depth) => [0, depth, 1]);
	}

	/* The callers of a function, from its outermost call on, and what it calls. Each row counts once in
	 * both. */
	static callers(graph, measure, frame) {
		return Shape.#grow(graph, measure, frame, (path, depth) => {
			const at = path.lastIndexOf(frame, depth - 1);
			return at < 0 ? null : [at + 1, depth, 1];
		});
	}
	static callees(graph, measure, frame) {
		return Shape.#grow(graph, measure, frame, (path, depth) => {
			const at = path.lastIndexOf(frame, depth - 1);
			return at < 0 ? null : [at - 1, -1, -1];
		});
	}

	/* steps: where in the path (leaf first) a row begins, ends, and which way it goes; null: not in the
	 * tree. */
	static #grow(graph, measure, rootFrame, steps) {
		const grower = new Grower(graph.names.length),
			rowNode = new Int32Array(graph.rowCount).fill(-1),
			path = [];
		for (let row = 0; row < graph.rowCount; row++) {
			if (!measure.width[row] && !measure.value[row] && !measure.base[row]) continue;
			const depth = graph.path(row, path),
				way = steps(path, depth);
			if (!way) continue;
			let node = 0;
			for (let i = way[0]; i !== way[1]; i += way[2]) node = grower.below(node, path[i]);
			rowNode[row] = node;
		}
		return new Shape(graph, measure, {
			frame: grower.frame.subarray(0, grower.count),
			parent: grower.parent.subarray(0, grower.count),
			rowNode,
			rootFrame,
		});
	}

	/* Parents come before children, so one pass backwards adds up all sums. */
	#addUp(values, inclusive = true) {
		const { rowNode, parent, count } = this,
			sums = new Float64Array(count);
		for (let row = 0; row < rowNode.length; row++)
			if (rowNode[row] >= 0) sums[rowNode[row]] += values[row];
		for (let node = count - 1; node > 0 && inclusive; node--) sums[parent[node]] += sums[node];
		return sums;
	}

	#sum() {
		const { measure } = this;
		this.width = this.#addUp(measure.width);
		this.value = this.#addUp(measure.value);
		this.base = this.#addUp(measure.base);
		this.variance = this.#addUp(measure.variance);
		this.samples = this.#addUp(measure.samples);
		this.own = this.#addUp(measure.value, false);
	}

	/* children: of all nodes. Those of one parent are neighbours, in the order of their names. */
	#order() {
		const { count, parent, frame } = this,
			rank = this.graph.rank;
		this.childFirst = new Int32Array(count + 1);
		this.children = new Int32Array(count ? count - 1 : 0);
		for (let node = 1; node < count; node++) this.childFirst[parent[node] + 1]++;
		for (let node = 0; node < count; node++) this.childFirst[node + 1] += this.childFirst[node];
		const fill = this.childFirst.slice(),
			byName = (a, b) => rank[frame[a]] - rank[frame[b]];
		for (let node = 1; node < count; node++) this.children[fill[parent[node]]++] = node;
		for (let node = 0; node < count; node++)
			if (this.childFirst[node + 1] - this.childFirst[node] > 1)
				this.children.subarray(this.childFirst[node], this.childFirst[node + 1]).sort(byName);
	}

	#place() {
		const { count, width, parent, childFirst, children } = this;
		const size = new Int32Array(count).fill(1),
			start = new Float64Array(count);
		const preorder = new Int32Array(count);
		for (let node = count - 1; node > 0; node--) size[parent[node]] += size[node];
		for (let node = 0; node < count; node++) {
			let at = start[node],
				number = preorder[node] + 1;
			for (let i = childFirst[node]; i < childFirst[node + 1]; i++) {
				const child = children[i];
				start[child] = at;
				preorder[child] = number;
				at += width[child];
				number += size[child];
			}
		}
		Object.assign(this, { size, start, preorder });
		this.#layOut();
	}

	#layOut() {
		const { width, start, childFirst, children } = this;
		this.levels = [];
		this.starts = [];
		this.ends = [];
		for (let level = [0]; level.length;) {
			const nodes = new Int32Array(level),
				starts = new Float64Array(level.length);
			const ends = new Float64Array(level.length);
			for (let i = 0; i < nodes.length; i++) {
				starts[i] = start[nodes[i]];
				ends[i] = starts[i] + width[nodes[i]];
			}
			this.levels.push(nodes);
			this.starts.push(starts);
			this.ends.push(ends);
			const next = [];
			for (const node of level)
				for (let i = childFirst[node]; i < childFirst[node + 1]; i++)
					if (width[children[i]] > 0) next.push(children[i]);
			level = next;
		}
	}

	/* Rows in the order of their nodes, so that the rows of a subtree are neighbours. */
	#sortRows() {
		const rows = [];
		for (let row = 0; row < this.rowNode.length; row++)
			if (this.rowNode[row] >= 0 && (this.measure.value[row] || this.measure.base[row]))
				rows.push(row);
		const key = row => this.preorder[this.rowNode[row]];
		this.rows = Int32Array.from(rows).sort((a, b) => key(a) - key(b));
	}

	#lower(preorder) {
		let low = 0,
			high = this.rows.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.preorder[this.rowNode[this.rows[middle]]] < preorder) low = middle + 1;
			else high = middle;
		}
		return low;
	}

	rowsBelow(node) {
		return this.rows.subarray(
			this.#lower(this.preorder[node]),
			this.#lower(this.preorder[node] + this.size[node]),
		);
	}

	frameOf(node) {
		return node ? this.frame[node] : this.rootFrame;
	}

	name(node) {
		const frame = this.frameOf(node);
		return frame < 0 ? "all" : this.graph.names[frame];
	}

	label(node) {
		const frame = this.frameOf(node);
		return frame < 0 ? "all" : this.graph.labels[frame];
	}

	verdict(node) {
		return verdict.of(this.base[node], this.value[node], this.variance[node], this.measure.known);
	}

	/* Nodes from the root to this one. */
	pathTo(node) {
		const path = [];
		for (; node >= 0; node = this.parent[node]) path.unshift(node);
		return path;
	}

	/* How much of the whole is in stacks with a matching frame. What is below a match counts too. */
	found(frames) {
		const inside = new Uint8Array(this.count),
			sum = { value: 0, base: 0, variance: 0, samples: 0, nodes: 0 };
		for (let node = 0; node < this.count; node++) {
			const frame = this.frameOf(node),
				above = node ? inside[this.parent[node]] : 0;
			const hit = frame >= 0 && frames[frame];
			inside[node] = above || hit ? 1 : 0;
			sum.nodes += hit && this.width[node] > 0 ? 1 : 0;
			if (!hit || above) continue;
			sum.value += this.value[node];
			sum.base += this.base[node];
			sum.variance += this.variance[node];
			sum.samples += this.samples[node];
		}
		return sum;
	}

	/* Sums of a node's rows by an attribute (thread or age), largest first: [[number, value], ...]. */
	split(node, attribute) {
		const sums = new Map();
		if (attribute)
			for (const row of this.rowsBelow(node))
				sums.set(attribute[row], (sums.get(attribute[row]) || 0) + this.measure.value[row]);
		return [...sums].filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
	}
}
