// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * The heap over time, with the resident memory. What is in use is a line in a band of two standard errors,
 * and RSS is dashed, so they differ without colours. A click chooses a moment. Dragging, or Shift with a
 * click or an arrow key, chooses a second moment to compare it with.
 *
 * points: { time (ms), inuse, error, rss, cause, isChoosable }, in the order of time.
 */
class Timeline {
	static LEFT = 64;
	static BOTTOM = 20;
	static TOP = 8;

	/* chosen(index, base): moments by number; base is -1 for none */
	constructor(canvas, chosen) {
		this.canvas = canvas;
		this.chosen = chosen;
		this.points = [];
		this.at = this.base = -1;
		new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
		canvas.addEventListener("pointerdown", event => this.#down(event));
		canvas.addEventListener("pointermove", event => this.#move(event));
		canvas.addEventListener("pointerup", event => this.#up(event));
		canvas.addEventListener("pointerleave", () => {
			this.hover = -1;
			tipText.hide();
			this.draw();
		});
		canvas.addEventListener("keydown", event => this.#key(event));
	}

	show(points, at, base) {
		Object.assign(this, { points, at, base, hover: -1 });
		if (this.cursor !== at && this.cursor !== base) this.cursor = this.anchor = undefined;
		this.draw();
	}

	#scales() {
		const { points } = this,
			first = points[0].time,
			last = points[points.length - 1].time;
		const most =
			points.reduce((top, p) => Math.max(top, p.inuse + 2 * p.error, p.rss || 0), 1) * 1.06;
		const wide = this.width - Timeline.LEFT - 10,
			high = this.height - Timeline.BOTTOM - Timeline.TOP;
		return {
			first,
			last,
			most,
			x: time => Timeline.LEFT + (last > first ? (time - first) / (last - first) : 0.5) * wide,
			y: value => Timeline.TOP + high - (value / most) * high,
		};
	}

	draw() {
		const host = this.canvas.parentElement,
			ratio = devicePixelRatio || 1;
		this.width = host.clientWidth;
		this.height = host.clientHeight;
		if (!this.width || !this.height) return;
		this.canvas.width = this.width * ratio;
		this.canvas.height = this.height * ratio;
		this.canvas.style.width = this.width + "px";
		this.canvas.style.height = this.height + "px";
		const c = (this.context = this.canvas.getContext("2d")),
			style = getComputedStyle(host);
		this.colour = name => style.getPropertyValue(name);
		c.scale(ratio, ratio);
		c.font = "11px " + style.fontFamily;
		if (!this.points.length) return;
		const scales = (this.scale = this.#scales());
		this.#axes(c, scales);
		this.#selection(c, scales);
		this.#lines(c, scales);
		this.#moments(c, scales);
		this.#labels(c, scales);
	}

	#axes(c, { first, last, most, x, y }) {
		let step = 2 ** Math.floor(Math.log2(most / 2));
		if (most / step > 4) step *= 2;
		c.strokeStyle = this.colour("--line");
		c.fillStyle = this.colour("--quiet");
		c.lineWidth = 1;
		c.textAlign = "right";
		c.textBaseline = "middle";
		for (let value = 0; value <= most; value += step) {
			const at = Math.round(y(value)) + 0.5;
			c.beginPath();
			c.moveTo(Timeline.LEFT, at);
			c.lineTo(this.width - 10, at);
			c.stroke();
			c.fillText(value ? words.bytes(value).replace(".0 ", " ") : "0", Timeline.LEFT - 6, at);
		}
		c.textBaseline = "alphabetic";
		const ticks =
			last > first ? Math.max(1, Math.min(8, Math.floor((this.width - Timeline.LEFT) / 110))) : 0;
		for (let i = 0; i <= ticks; i++) {
			const time = ticks ? first + ((last - first) * i) / ticks : first;
			c.textAlign = i === 0 ? "left" : i === ticks ? "right" : "center";
			c.fillText(
				last - first > 36e5 * 20 ? words.moment(time).slice(5, 16) : words.clock(time),
				x(time),
				this.height - 5,
			);
		}
	}

	#selection(c, { x }) {
		if (this.base < 0 || this.at < 0) return;
		const [from, to] = [x(this.points[this.base].time), x(this.points[this.at].time)].sort(
			(a, b) => a - b,
		);
		c.fillStyle = this.colour("--accent");
		c.globalAlpha = 0.12;
		c.fillRect(from, Timeline.TOP, to - from, this.height - Timeline.BOTTOM - Timeline.TOP);
		c.globalAlpha = 1;
	}

	/* Points without a known value are passed over: the line goes on to the next known one. */
	#path(c, { x, y }, value) {
		c.beginPath();
		this.points
			.filter(point => value(point) > 0)
			.forEach((point, i) => c[i ? "lineTo" : "moveTo"](x(point.time), y(value(point))));
	}

	#lines(c, scales) {
		const { x, y } = scales,
			{ points } = this;
		c.beginPath();
		points.forEach((p, i) => c[i ? "lineTo" : "moveTo"](x(p.time), y(p.inuse + 2 * p.error)));
		for (const p of points.slice().reverse())
			c.lineTo(x(p.time), y(Math.max(0, p.inuse - 2 * p.error)));
		c.closePath();
		c.fillStyle = this.colour("--heap");
		c.globalAlpha = 0.2;
		c.fill();
		c.globalAlpha = 1;
		c.beginPath();
		points.forEach((p, i) => c[i ? "lineTo" : "moveTo"](x(p.time), y(p.inuse)));
		c.strokeStyle = this.colour("--heap");
		c.lineWidth = 1.8;
		c.stroke();
		this.#path(c, scales, p => p.rss);
		c.strokeStyle = this.colour("--rss");
		c.lineWidth = 1.4;
		c.setLineDash([5, 3]);
		c.stroke();
		c.setLineDash([]);
		if (points.length > Math.max(24, (this.width - Timeline.LEFT) / 10)) return;
		c.fillStyle = this.colour("--heap");
		for (const p of points) {
			c.beginPath();
			c.arc(x(p.time), y(p.inuse), 2.4, 0, 7);
			c.fill();
		}
	}

	/* Where the words beside two lines go: to the left of the earlier line, to the right of the later
	 * one. At an edge they go inwards; if they would meet, one goes below the other. */
	static places(base, at, right, wideOf) {
		const GAP = 6,
			place = (x, label, toLeft) => ({
				label,
				from: toLeft ? x - GAP - wideOf(label) : x + GAP,
				line: 0,
			}),
			places = [
				place(base, "base", base - GAP - wideOf("base") >= Timeline.LEFT),
				place(at, "new", at + GAP + wideOf("new") > right),
			],
			[first, second] = places;
		if (first.from < second.from + wideOf("new") && second.from < first.from + wideOf("base"))
			second.line = 1;
		return places;
	}

	#labels(c, { x }) {
		if (this.base < 0 || this.at < 0) return;
		const places = Timeline.places(
			x(this.points[this.base].time),
			x(this.points[this.at].time),
			this.width - 10,
			label => c.measureText(label).width,
		);
		c.textAlign = "left";
		/* A line may pass behind the words. */
		c.lineWidth = 4;
		c.lineJoin = "round";
		c.strokeStyle = this.colour("--surface");
		c.fillStyle = this.colour("--accent");
		for (const { label, from, line } of places) {
			c.strokeText(label, from, Timeline.TOP + 9 + 14 * line);
			c.fillText(label, from, Timeline.TOP + 9 + 14 * line);
		}
	}

	#moments(c, { x, y }) {
		for (const [number, isChosen] of [
			[this.base, true],
			[this.at, true],
			[this.hover, false],
		]) {
			const point = this.points[number];
			if (!point) continue;
			const at = Math.round(x(point.time)) + 0.5;
			c.strokeStyle = this.colour(isChosen ? "--accent" : "--quiet");
			c.lineWidth = isChosen ? 1.5 : 1;
			c.beginPath();
			c.moveTo(at, Timeline.TOP);
			c.lineTo(at, this.height - Timeline.BOTTOM);
			c.stroke();
			if (!isChosen) continue;
			c.fillStyle = this.colour("--accent");
			c.beginPath();
			c.arc(at, y(point.inuse), 4, 0, 7);
			c.fill();
		}
	}

	/* ---- pointer and keyboard */

	/* The point at the pointer. choosable: a point that has a profile. */
	#nearest(event, choosable) {
		const x = event.clientX - this.canvas.getBoundingClientRect().left;
		let best = -1,
			distance = Infinity;
		this.points.forEach((point, i) => {
			const d = Math.abs(this.scale.x(point.time) - x);
			if (d < distance && (!choosable || point.isChoosable)) [best, distance] = [i, d];
		});
		return best;
	}

	#down(event) {
		if (!this.points.length) return;
		this.canvas.setPointerCapture(event.pointerId);
		this.from = this.#nearest(event, true);
		if (event.shiftKey && this.at >= 0) {
			this.from = -1;
			this.#choose(this.#nearest(event, true), this.at);
		}
	}

	#move(event) {
		if (!this.points.length) return;
		this.hover = this.#nearest(event);
		const to = this.#nearest(event, true);
		if (event.buttons && this.from >= 0 && to !== this.from) {
			[this.base, this.at] = [Math.min(this.from, to), Math.max(this.from, to)];
			this.dragged = true;
		}
		const p = this.points[this.hover];
		tipText.show(
			[
				["Time", words.moment(p.time)],
				["In use", words.estimate(p.inuse, p.error * p.error, "bytes")],
				["RSS", p.rss > 0 ? words.bytes(p.rss) : ""],
				["Why", p.cause || ""],
			].filter(([, text]) => text),
			event.clientX,
			event.clientY,
		);
		this.draw();
	}

	#up(event) {
		if (this.dragged) this.#choose(this.at, this.base);
		else if (this.from >= 0) this.#choose(this.#nearest(event, true), -1);
		this.dragged = false;
		this.from = -1;
	}

	/* The earlier of two points is the base. */
	#choose(at, base) {
		[this.at, this.base] = base >= 0 && base > at ? [base, at] : [at, base === at ? -1 : base];
		this.draw();
		this.chosen(this.at, this.base);
	}

	/* Moves through the points that have profiles. With Shift the other end of the range stays. */
	#key(event) {
		const way = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
		const stops = [...this.points.keys()].filter(i => this.points[i].isChoosable),
			last = stops.length - 1;
		if (last < 0 || !way || event.ctrlKey || event.altKey || event.metaKey) return;
		const from = this.cursor ?? (this.at < 0 ? stops[last] : this.at);
		const next = stops[Math.max(0, Math.min(last, stops.indexOf(from) + way))];
		event.preventDefault();
		event.stopPropagation();
		this.cursor = next;
		if (event.shiftKey) this.anchor ??= from;
		else this.anchor = undefined;
		this.#choose(event.shiftKey ? this.anchor : next, event.shiftKey ? next : -1);
	}
}

/* A tip of terms and texts, for all that is no frame. */
const tipText = {
	show(list, x, y) {
		const box = $("tip");
		box.replaceChildren(
			el(
				"dl",
				{ class: "facts" },
				...list.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]),
			),
		);
		box.hidden = false;
		box.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.offsetWidth - 8)) + "px";
		box.style.top =
			(y + 18 + box.offsetHeight > innerHeight ? Math.max(4, y - box.offsetHeight - 12) : y + 18) +
			"px";
	},
	hide() {
		tip.show(null);
	},
};

/* A line of a few dozen pixels: what is in use, over time. */
function sparkline(points) {
	const canvas = el("canvas", {
		class: "spark",
		role: "img",
		"aria-label":
			points.length < 2
				? ""
				: "in use from " +
					words.bytes(points[0].inuse) +
					" to " +
					words.bytes(points[points.length - 1].inuse),
	});
	const wide = 120,
		high = 26,
		ratio = devicePixelRatio || 1,
		c = canvas.getContext("2d");
	canvas.width = wide * ratio;
	canvas.height = high * ratio;
	if (points.length < 2) return canvas;
	const first = points[0].time,
		last = points[points.length - 1].time || first + 1;
	const low = Math.min(...points.map(p => p.inuse)),
		top = Math.max(...points.map(p => p.inuse), low + 1);
	/* Small changes are drawn flat, since chance would look like a trend. */
	const span = Math.max(top - low, top * 0.15),
		middle = (top + low) / 2;
	c.scale(ratio, ratio);
	c.beginPath();
	points.forEach((p, i) =>
		c[i ? "lineTo" : "moveTo"](
			2 + ((p.time - first) / Math.max(1, last - first)) * (wide - 4),
			high / 2 - ((p.inuse - middle) / span) * (high - 6),
		),
	);
	c.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--heap");
	c.lineWidth = 1.5;
	c.lineJoin = "round";
	c.stroke();
	return canvas;
}
