// SPDX-License-Identifier: Apache-2.0
"use strict";

/* What is known of a frame, for the tip at the pointer and for the panel below the graph. */
const facts = (() => {
	/* Sums of one kind over a node's rows. */
	function sum(graph, kind, rows, mask) {
		const total = { value: 0, base: 0, variance: 0, samples: 0 };
		for (const row of rows) {
			if (mask && !mask[row]) continue;
			total.value += kind.value[row];
			total.base += kind.base[row];
			total.variance += kind.variance[row];
			total.samples += kind.samples[row];
		}
		return total;
	}

	function single(shape, node, kind, total) {
		const whole = shape.value[0],
			shown = kind === shape.measure.kind;
		const doubt = words.doubt(total.value, total.samples, total.variance, kind.known);
		return (
			words.estimate(total.value, kind.known ? total.variance : 0, kind.unit) +
			(doubt ? " (" + doubt + ")" : "") +
			(shown && whole > 0 ? ", " + words.percent(total.value / whole) + " of all" : "")
		);
	}

	/* "64.0 KiB", the mean size of what is in use or was allocated. */
	function meanSize(graph, rows) {
		for (const [bytes, objects] of [
			["inuse", "inuse-objects"],
			["alloc", "objects"],
		]) {
			const size = graph.kinds.find(kind => kind.name === bytes),
				number = graph.kinds.find(kind => kind.name === objects);
			if (!size || !number) continue;
			const many = sum(graph, number, rows).value;
			if (many > 0) return words.bytes(sum(graph, size, rows).value / many);
		}
		return "";
	}

	function parts(split, names, whole) {
		const shown = split
			.slice(0, 3)
			.map(([number, value]) => names[number] + " " + words.percent(value / whole));
		return shown.join(", ") + (split.length > 3 ? ", " + (split.length - 3) + " more" : "");
	}

	function ofChange(shape, node) {
		const unit = shape.measure.unit,
			found = shape.verdict(node);
		return [
			["Base", words.amount(shape.base[node], unit)],
			["New", words.amount(shape.value[node], unit)],
			[
				"Change",
				words.change(found.change, unit) +
					(shape.measure.known && shape.variance[node] > 0
						? " \u00b1 " + words.amount(Math.sqrt(shape.variance[node]), unit)
						: ""),
			],
			["Verdict", verdict.text(found, shape.measure.known)],
		];
	}

	function ofProfile(shape, node) {
		const { graph } = shape,
			rows = shape.rowsBelow(node),
			list = [];
		for (const kind of graph.kinds)
			if (kind === shape.measure.kind || kind.name !== "temporary")
				list.push([kindTitle(kind.name), single(shape, node, kind, sum(graph, kind, rows))]);
		list.sort(
			(a, b) =>
				(b[0] === kindTitle(shape.measure.kind.name)) -
				(a[0] === kindTitle(shape.measure.kind.name)),
		);
		if (shape.own[node] > 0 && shape.own[node] < shape.value[node])
			list.push(["Ends here", words.amount(shape.own[node], shape.measure.unit)]);
		const size = meanSize(graph, rows);
		if (size) list.push(["Mean size", size]);
		const ages = shape.split(node, graph.rowAge),
			threads = shape.split(node, graph.rowThread);
		if (ages.some(([age]) => age > 0)) list.push(["Age", parts(ages, graph.ages, shape.value[node])]);
		if (threads.some(([thread]) => thread > 0))
			list.push(["Threads", parts(threads, graph.threads, shape.value[node])]);
		return list;
	}

	/* [[term, text], ...] */
	function list(shape, node) {
		const { graph } = shape,
			frame = shape.frameOf(node);
		const found = shape.measure.isDiff ? ofChange(shape, node) : ofProfile(shape, node);
		if (frame >= 0 && graph.place(frame)) found.push(["Source", graph.place(frame)]);
		if (frame >= 0 && graph.modules[frame]) found.push(["Module", graph.modules[frame]]);
		return found;
	}

	function element(shape, node) {
		return el(
			"dl",
			{ class: "facts" },
			...list(shape, node).flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]),
		);
	}

	/* One line, for screen readers. */
	function line(shape, node) {
		const first = shape.measure.isDiff
			? ofChange(shape, node)
					.slice(2)
					.map(([, text]) => text)
					.join(", ")
			: single(shape, node, shape.measure.kind, {
					value: shape.value[node],
					variance: shape.variance[node],
					samples: shape.samples[node],
				});
		return shape.label(node) + ": " + first;
	}

	return { element, line, list };
})();

/* The tip at the pointer; at one frame only once, since the pointer moves more often than it changes
 * frames. */
const tip = {
	show(shape, node, x, y) {
		const box = $("tip");
		if (!shape) {
			box.hidden = true;
			this.node = this.shape = null;
			return;
		}
		if (this.node !== node || this.shape !== shape) {
			box.replaceChildren(el("b", {}, shape.name(node)), facts.element(shape, node));
			[this.node, this.shape] = [node, shape];
		}
		box.hidden = false;
		const wide = box.offsetWidth,
			high = box.offsetHeight;
		box.style.left = Math.max(4, Math.min(x + 14, innerWidth - wide - 8)) + "px";
		box.style.top = (y + 18 + high > innerHeight ? Math.max(4, y - high - 12) : y + 18) + "px";
	},
};
