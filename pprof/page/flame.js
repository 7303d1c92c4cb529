// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * Draws shapes as a flame graph. The canvas is as high as the visible part: with deep stacks, a canvas for
 * the whole graph is too high for browsers. On each level a binary search finds the boxes that have a pixel,
 * so the time of a frame depends on the size of the window and not on the number of nodes.
 *
 *	rows	from top to bottom: { shape, nodes, starts, ends }; a sandwich is the rows of two shapes
 *	from, to	the part that is shown, in the unit of the measure
 */
class Flame {
	static ROW = 18;
	static BOX_LEAST = 1.5; /* pixels; narrower boxes are drawn together */
	static BOX_MOVING = 6; /* the same while the graph moves, so that frames are in time */
	static SETTLE_MS = 120; /* after the wheel last turned */
	static TEXT_LEAST = 26; /* pixels; narrower boxes have no text */
	static INK = "#1c150c"; /* on boxes, which are light in dark mode too */
	static ZOOM_MS = 160;

	/* actions: zoom(node), sandwich(frame), focus(shape, node), both null for nothing; describe(shape,
	 * node) for the tip. */
	constructor(host, actions) {
		this.host = host;
		this.actions = actions;
		this.canvas = host.querySelector("canvas");
		this.spacer = host.querySelector(".spacer");
		this.context = this.canvas.getContext("2d");
		this.rows = [];
		this.from = this.to = 0;
		this.zoomed = 0;
		this.hover = this.current = null;
		this.found = null;
		this.moving = false;
		this.frames = []; /* how many milliseconds drawing took, of the newest 240 frames */
		this.patterns = {};
		new ResizeObserver(() => this.resize()).observe(host);
		host.addEventListener("scroll", () => this.request(), { passive: true });
		this.canvas.addEventListener("pointermove", event => this.#move(event));
		this.canvas.addEventListener("pointerleave", () => this.#leave());
		this.canvas.addEventListener("click", event => this.#click(event));
		this.canvas.addEventListener("wheel", event => this.#wheel(event), { passive: false });
		this.canvas.addEventListener("keydown", event => this.#key(event));
		this.canvas.addEventListener("blur", () => {
			this.actions.tip(null);
		});
	}

	/* look: { dark, by: "module" | "allocation" }; found: frames that the search matches, or null. */
	show(rows, look, found, zoomed) {
		this.rows = rows;
		this.look = look;
		this.found = found;
		this.hover = this.current = null;
		const shape = rows.length ? rows[rows.length - 1].shape : null;
		this.shape = shape;
		this.zoomed = shape && zoomed < shape.count ? zoomed : 0;
		this.palette =
			shape && !shape.measure.isDiff && look.by === "module"
				? colour.byModule(shape.graph, look.dark)
				: null;
		this.spacer.style.height = rows.length * Flame.ROW + "px";
		[this.from, this.to] = this.#range(this.zoomed);
		this.resize();
	}

	search(found) {
		this.found = found;
		this.request();
	}

	#range(node) {
		const shape = this.shape;
		if (!shape) return [0, 0];
		return [shape.start[node], shape.start[node] + shape.width[node]];
	}

	/* Moves there smoothly, unless the user wants no motion. */
	zoom(node) {
		this.zoomed = node;
		const [from, to] = this.#range(node),
			start = performance.now(),
			old = [this.from, this.to];
		const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
		cancelAnimationFrame(this.gliding);
		const glide = now => {
			const part = still ? 1 : Math.min(1, (now - start) / Flame.ZOOM_MS),
				ease = 1 - (1 - part) ** 3;
			this.from = old[0] + (from - old[0]) * ease;
			this.to = old[1] + (to - old[1]) * ease;
			this.moving = part < 1;
			this.draw();
			if (part < 1) this.gliding = requestAnimationFrame(glide);
		};
		this.gliding = requestAnimationFrame(glide);
	}

	resize() {
		const ratio = devicePixelRatio || 1,
			width = this.host.clientWidth,
			height = this.host.clientHeight;
		if (!width || !height) return;
		this.width = width;
		this.height = height;
		if (
			this.canvas.width !== Math.round(width * ratio) ||
			this.canvas.height !== Math.round(height * ratio)
		) {
			this.canvas.width = Math.round(width * ratio);
			this.canvas.height = Math.round(height * ratio);
			this.canvas.style.width = width + "px";
			this.canvas.style.height = height + "px";
		}
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.readStyle();
		this.context.font = "12px " + this.style.mono;
		this.letter = this.context.measureText("mmmmmmmmmm").width / 10;
		this.draw();
	}

	/* Kept, since asking for them while drawing would take longer than drawing. */
	readStyle() {
		const style = getComputedStyle(this.host),
			of = name => style.getPropertyValue("--" + name);
		this.style = {
			mono: of("mono"),
			accent: of("accent"),
			ink: of("ink"),
			crumb: of("crumb"),
			quiet: of("quiet"),
		};
	}

	/* At most once for each frame of the screen. */
	request() {
		if (this.due) return;
		this.due = requestAnimationFrame(() => {
			this.due = 0;
			this.draw();
		});
	}

	/* ---- drawing */

	draw() {
		const began = performance.now(),
			{ context, host } = this;
		if (!this.width || !this.shape) return;
		context.clearRect(0, 0, this.width, this.height);
		context.textBaseline = "middle";
		const scale = this.to > this.from ? this.width / (this.to - this.from) : 0;
		const first = Math.floor(host.scrollTop / Flame.ROW);
		const last = Math.min(this.rows.length, Math.ceil((host.scrollTop + this.height) / Flame.ROW));
		for (let row = first; row < last; row++)
			this.#level(this.rows[row], row * Flame.ROW - host.scrollTop, scale);
		if (this.current) this.#outline(this.current, scale, this.style.accent, 2);
		if (this.hover && (!this.current || this.hover.node !== this.current.node))
			this.#outline(this.hover, scale, this.style.ink, 1);
		this.frames.push(performance.now() - began);
		if (this.frames.length > 240) this.frames.shift();
	}

	/* The first box, from number `from` on, that ends to the right of a value. It is mostly near, so the
	 * search doubles its steps. */
	static find(ends, value, from = 0) {
		let low = from,
			step = 1;
		while (low + step < ends.length && ends[low + step - 1] <= value) {
			low += step;
			step *= 2;
		}
		let high = Math.min(ends.length, low + step);
		while (low < high) {
			const middle = (low + high) >> 1;
			if (ends[middle] <= value) low = middle + 1;
			else high = middle;
		}
		return low;
	}

	#level({ shape, nodes, starts, ends }, y, scale) {
		const least = this.moving ? Flame.BOX_MOVING : Flame.BOX_LEAST;
		let crumb = -1,
			crumbEnd = -1;
		for (let i = Flame.find(ends, this.from); i < nodes.length; i++) {
			const left = (starts[i] - this.from) * scale,
				right = (ends[i] - this.from) * scale;
			if (left >= this.width) break;
			if (right - left >= least) {
				this.#box(shape, nodes[i], Math.max(0, left), Math.min(this.width, right), y);
				continue;
			}
			/* Boxes that are narrower are drawn together, up to the next pixel. */
			if (left > crumbEnd + 1) {
				this.#crumbs(crumb, crumbEnd, y);
				crumb = left;
			}
			crumbEnd = Math.max(right, left + 0.75);
			i = Math.max(i, Flame.find(ends, this.from + (Math.floor(left) + 1) / scale, i) - 1);
		}
		this.#crumbs(crumb, crumbEnd, y);
	}

	#crumbs(from, to, y) {
		if (from < 0) return;
		this.context.fillStyle = this.style.crumb;
		this.context.fillRect(from, y, to - from, Flame.ROW - 1);
	}

	/* At whole pixels, which is sharper and faster. */
	#box(shape, node, from, to, y) {
		const { context } = this,
			left = Math.round(from),
			right = Math.max(left + 1, Math.round(to)),
			gap = right - left > 4 ? 1 : 0,
			wide = right - left - gap;
		const frame = shape.frameOf(node),
			height = Flame.ROW - 1;
		const hit = !this.found || (frame >= 0 && this.found[frame]);
		const found = shape.measure.isDiff && frame >= 0 ? shape.verdict(node) : null;
		if (!hit) context.globalAlpha = 0.28;
		context.fillStyle = this.#fill(shape, node, frame, found);
		context.fillRect(left, y, wide, height);
		if (found && found.sure) this.#hatch(found.mark, left, wide, y, height);
		if (wide >= Flame.TEXT_LEAST) {
			if (!hit) context.globalAlpha = this.look.dark ? 1 : 0.6;
			context.fillStyle = hit || !this.look.dark ? Flame.INK : this.style.quiet;
			const x = left + 4,
				middle = y + height / 2 + 0.5,
				used = this.#text(this.#mark(found), shape.label(node), x, wide - 7, middle);
			if (used) this.#size(Flame.size(shape, node), x + used, wide - 7 - used, middle, hit);
		}
		context.globalAlpha = 1;
		if (this.found && hit && frame >= 0) {
			context.fillStyle = this.style.accent;
			context.fillRect(left, y + height - 3, wide, 3);
		}
	}

	#fill(shape, node, frame, found) {
		const { dark } = this.look;
		if (frame < 0) return dark ? "hsl(40 5% 52%)" : "hsl(40 10% 88%)";
		if (found) return colour.byChange(found, shape, node, dark);
		return this.palette ? this.palette[frame] : colour.byAllocation(shape, node, dark);
	}

	#hatch(mark, left, wide, y, height) {
		this.context.fillStyle = this.#pattern(mark);
		this.context.fillRect(left, y, wide, height);
		if (mark === "new" || mark === "vanished") this.#edge(mark, left, wide, y, height);
	}

	#mark(found) {
		if (!found || !found.sure) return "";
		return { new: "new ", vanished: "gone ", more: "+ ", less: "\u2212 ", same: "" }[found.mark];
	}

	#pattern(mark) {
		const kind = mark === "less" || mark === "vanished" ? "less" : "more";
		return (this.patterns[kind] ||= colour.pattern(this.context, kind));
	}

	/* A new frame has a solid bar on its left, a vanished frame a dashed edge. */
	#edge(mark, left, wide, y, height) {
		const { context } = this;
		if (mark === "new") {
			context.fillStyle = "#7a1f00";
			context.fillRect(left, y, Math.min(3, wide), height);
			return;
		}
		context.strokeStyle = "#123a6b";
		context.lineWidth = 1;
		context.setLineDash([3, 2]);
		context.strokeRect(left + 0.5, y + 0.5, Math.max(0, wide - 1), height - 1);
		context.setLineDash([]);
	}

	/* The value of a box; in a difference, its change. */
	static size(shape, node) {
		const { unit, isDiff } = shape.measure,
			change = shape.value[node] - shape.base[node];
		return !isDiff ? words.amount(shape.value[node], unit) : change ? words.change(change, unit) : "";
	}

	/* Writes the value behind the name, if there is room for all of it. */
	#size(text, x, room, y, hit) {
		if (!text || (text.length + 2) * this.letter > room) return;
		if (hit) this.context.globalAlpha = 0.75;
		this.context.fillText(text, x + 2 * this.letter, y);
	}

	/* mark: stands before the name, such as "+ ". Returns the width of the text, or 0 if it was cut. */
	#text(mark, name, x, room, y) {
		const { context } = this;
		const fits = Math.floor(room / this.letter);
		if (fits < 2 + mark.length) return 0;
		let text = mark + Flame.shorten(name, fits - mark.length);
		/* Letters of other scripts are wider than those that were measured. */
		const isPlain = !/[^\x20-\x7e\u2026\u2212]/.test(text);
		if (!isPlain)
			while (text.length > 1 && context.measureText(text).width > room)
				text = text.slice(0, -2) + "\u2026";
		context.fillText(text, x, y);
		if (text !== mark + name) return 0;
		return isPlain ? text.length * this.letter : context.measureText(text).width;
	}

	/* Cuts the beginning, since the end of "store::Index::decode" says more. */
	static shorten(text, fits) {
		if (text.length <= fits) return text;
		const last = /^[\w$~:]+::([\w$~]+)$/.exec(text);
		if (last && last[1].length <= fits) return last[1];
		return (last ? last[1] : text).slice(0, fits - 1) + "\u2026";
	}

	#outline({ row, node }, scale, style, thick) {
		const { shape } = this.rows[row],
			left = Math.max(0, (shape.start[node] - this.from) * scale);
		const right = Math.min(this.width, (shape.start[node] + shape.width[node] - this.from) * scale);
		const y = row * Flame.ROW - this.host.scrollTop;
		if (right <= 0 || left >= this.width) return;
		this.context.strokeStyle = style;
		this.context.lineWidth = thick;
		this.context.strokeRect(
			left + thick / 2,
			y + thick / 2,
			Math.max(1, right - left - thick - 1),
			Flame.ROW - 1 - thick,
		);
	}

	/* ---- pointer */

	#at(event) {
		const box = this.canvas.getBoundingClientRect();
		const row = Math.floor((event.clientY - box.top + this.host.scrollTop) / Flame.ROW);
		if (!this.shape || row < 0 || row >= this.rows.length) return null;
		const { shape, nodes, ends } = this.rows[row];
		const value = this.from + ((event.clientX - box.left) / this.width) * (this.to - this.from);
		const node = nodes[Flame.find(ends, value)];
		return node !== undefined && shape.start[node] <= value ? { row, node } : null;
	}

	#move(event) {
		const at = this.#at(event),
			same = this.hover && at && this.hover.node === at.node && this.hover.row === at.row;
		this.hover = at;
		this.canvas.style.cursor = at ? "pointer" : "default";
		if (!same) this.request();
		this.actions.tip(
			at ? this.rows[at.row].shape : null,
			at && at.node,
			event.clientX,
			event.clientY,
		);
	}

	#leave() {
		this.hover = null;
		this.actions.tip(null);
		this.request();
	}

	#click(event) {
		const at = this.#at(event);
		if (at) this.#choose(at, event.shiftKey || event.altKey);
	}

	#choose(at, sandwich) {
		const { shape } = this.rows[at.row],
			frame = shape.frameOf(at.node);
		this.current = at;
		this.actions.focus(shape, at.node);
		if ((sandwich || shape.rootFrame >= 0) && frame >= 0) this.actions.sandwich(frame);
		else this.actions.zoom(at.node);
	}

	/* With Ctrl (or a pinch) the wheel zooms at the pointer. Sideways it moves the graph. */
	#wheel(event) {
		const whole = this.shape ? this.shape.width[0] : 0,
			span = this.to - this.from;
		if (
			!whole ||
			!(event.ctrlKey || event.metaKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
		)
			return;
		event.preventDefault();
		cancelAnimationFrame(this.gliding);
		if (event.ctrlKey || event.metaKey) {
			const at =
				this.from +
				((event.clientX - this.canvas.getBoundingClientRect().left) / this.width) * span;
			const next = Math.min(whole, Math.max(whole * 1e-7, span * Math.exp(event.deltaY * 0.004)));
			this.from = at - ((at - this.from) * next) / span;
			this.to = this.from + next;
		} else {
			this.from += (event.deltaX / this.width) * span;
			this.to = this.from + span;
		}
		const over = Math.max(0, -this.from) || Math.min(0, whole - this.to);
		this.from += over;
		this.to += over;
		this.moving = true;
		clearTimeout(this.settling);
		this.settling = setTimeout(() => {
			this.moving = false;
			this.request();
		}, Flame.SETTLE_MS);
		this.request();
	}

	/* ---- keyboard */

	#key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !this.shape) return;
		const moves = {
			ArrowUp: -1,
			ArrowDown: 1,
			ArrowLeft: -1,
			ArrowRight: 1,
			Home: -1,
			End: 1,
		};
		if (event.key === "Enter" || event.key === " ")
			this.current && this.#choose(this.current, event.shiftKey);
		else if (event.key in moves) this.#step(event.key, moves[event.key]);
		else return;
		event.preventDefault();
		event.stopPropagation();
	}

	#step(key, way) {
		const row = this.rows.findIndex(({ nodes }) => nodes.includes(this.zoomed));
		let at = this.current || { row: Math.max(0, row), node: this.zoomed };
		if (this.current && (key === "ArrowUp" || key === "ArrowDown"))
			at = this.#vertical(at, way) || at;
		else if (this.current) {
			const { nodes } = this.rows[at.row],
				i = nodes.indexOf(at.node);
			const next = key === "Home" ? 0 : key === "End" ? nodes.length - 1 : i + way;
			if (next >= 0 && next < nodes.length) at = { row: at.row, node: nodes[next] };
		}
		this.current = at;
		this.#reveal(at);
		this.actions.focus(this.rows[at.row].shape, at.node);
		this.request();
	}

	/* The frame above or below: the caller, or the largest of the called frames. */
	#vertical({ row, node }, way) {
		const next = this.rows[row + way],
			{ shape } = this.rows[row];
		if (!next) return null;
		if (next.shape !== shape)
			/* from one half of a sandwich into the other: the function itself */
			return { row: row + way, node: next.nodes[0] };
		if (next.nodes.includes(shape.parent[node]) && shape.parent[node] >= 0)
			return { row: row + way, node: shape.parent[node] };
		let best = null;
		for (let i = shape.childFirst[node]; i < shape.childFirst[node + 1]; i++) {
			const child = shape.children[i];
			if (shape.width[child] > 0 && (best === null || shape.width[child] > shape.width[best]))
				best = child;
		}
		return best === null ? null : { row: row + way, node: best };
	}

	#reveal({ row, node }) {
		const top = row * Flame.ROW,
			{ shape } = this.rows[row];
		if (top < this.host.scrollTop) this.host.scrollTop = top;
		else if (top + Flame.ROW > this.host.scrollTop + this.height)
			this.host.scrollTop = top + Flame.ROW - this.height;
		const left = shape.start[node],
			right = left + shape.width[node];
		if (left >= this.to || right <= this.from) {
			const span = this.to - this.from;
			this.from = Math.max(0, Math.min(left - span / 2, shape.width[0] - span));
			this.to = this.from + span;
		}
	}
}
