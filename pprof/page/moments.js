// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * The snapshots of a process: on the time line, and as two lists for who cannot see or point at one. The
 * earlier of two chosen moments is the base.
 */
class Moments {
	/* chosen({ id, base }): base is "" for none */
	constructor(chosen) {
		this.chosen = chosen;
		this.points = [];
		this.chart = new Timeline($("chart"), (at, base) => {
			const point = this.points[at],
				other = this.points[base];
			say(
				other
					? "Compares " + words.clock(other.time) + " with " + words.clock(point.time) + "."
					: words.moment(point.time) + ", " + Moments.#inUse(point) + " in use.",
			);
			chosen({ id: point.id, base: other ? other.id : "" });
		});
		$("moment").addEventListener("change", () =>
			chosen({ id: $("moment").value, base: $("base").value }),
		);
		$("base").addEventListener("change", () =>
			chosen({ id: $("moment").value, base: $("base").value }),
		);
	}

	static #inUse(point) {
		return words.estimate(point.inuse, point.error * point.error, "bytes");
	}

	/* answer: of /api/v1/timeline, oldest first */
	load(answer) {
		this.points = answer.points.map(point => ({
			time: point.time_ns / 1e6,
			inuse: point.inuse,
			error: point.error || 0,
			rss: point.rss,
			id: point.id,
			cause: point.cause,
		}));
	}

	clear() {
		this.points = [];
	}

	newest() {
		return this.points.length ? this.points[this.points.length - 1].id : "";
	}

	/* "" is the newest. */
	find(id) {
		return this.points.find(point => point.id === (id || this.newest())) || null;
	}

	show(id, base) {
		const { points } = this;
		$("time").hidden = !points.length;
		if (!points.length) return;
		const number = id => points.findIndex(point => point.id === id);
		const at = number(id || this.newest()),
			from = base ? number(base) : -1;
		this.chart.show(points, at, from);
		const options = points.map((point, i) => {
			const text = words.moment(point.time) + "  " + Moments.#inUse(point);
			return el(
				"option",
				{ value: point.id },
				text + (i === points.length - 1 ? "  (newest)" : ""),
			);
		});
		$("moment").replaceChildren(...options.slice().reverse());
		if (at < 0) $("moment").append(el("option", { value: id }, "another: " + id));
		$("moment").value = at < 0 ? id : points[at].id;
		$("base").replaceChildren(
			el("option", { value: "" }, "nothing"),
			...options.map(option => option.cloneNode(true)).reverse(),
		);
		if (base && from < 0) $("base").append(el("option", { value: base }, "another: " + base));
		$("base").value = base;
	}
}
