// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * A shape as an outline that opens and closes: the same tree as the flame graph, for keyboard and screen
 * reader (the pattern "treegrid" of WAI-ARIA). Chains of single calls are opened at once, and the path that
 * most takes.
 */
class Outline {
	static OPEN_SHARE = 0.5;
	static CHILDREN = 50;

	constructor(host, actions) {
		this.host = host;
		this.actions = actions;
	}

	show(shape, found) {
		this.shape = shape;
		this.found = found;
		this.open = new Set();
		this.full = new Set();
		this.current = 0;
		this.#openPath(0);
		this.#draw();
	}

	#children(node) {
		const { shape } = this,
			list = [];
		for (let i = shape.childFirst[node]; i < shape.childFirst[node + 1]; i++)
			if (
				shape.width[shape.children[i]] > 0 ||
				shape.value[shape.children[i]] ||
				shape.base[shape.children[i]]
			)
				list.push(shape.children[i]);
		const size = shape.measure.isDiff
			? node => Math.abs(shape.value[node] - shape.base[node])
			: node => shape.value[node];
		return list.sort((a, b) => size(b) - size(a) || a - b);
	}

	/* Opens nodes from here on, as long as one child has most of its parent. */
	#openPath(node) {
		for (let steps = 0; steps < 64; steps++) {
			const children = this.#children(node);
			this.open.add(node);
			if (
				!children.length ||
				!(this.shape.width[children[0]] >= Outline.OPEN_SHARE * this.shape.width[node])
			)
				return;
			node = children[0];
		}
	}

	#rows() {
		const rows = [],
			stack = [[0, 1]];
		while (stack.length) {
			const [node, level, more] = stack.pop();
			if (more) {
				rows.push({ node, level, more });
				continue;
			}
			const children = this.#children(node),
				shown = this.full.has(node) ? children.length : Outline.CHILDREN;
			rows.push({ node, level, parent: children.length > 0 });
			if (!this.open.has(node)) continue;
			if (children.length > shown) stack.push([node, level + 1, children.length - shown]);
			for (const child of children.slice(0, shown).reverse()) stack.push([child, level + 1]);
		}
		return rows;
	}

	#numbers(node) {
		const { shape } = this,
			{ unit, known } = shape.measure;
		if (!shape.measure.isDiff)
			return [
				words.amount(shape.value[node], unit),
				words.doubt(shape.value[node], shape.samples[node], shape.variance[node], known),
				shape.value[0] > 0 ? words.percent(shape.value[node] / shape.value[0]) : "",
			];
		const found = shape.verdict(node);
		return [
			words.change(found.change, unit),
			shape.variance[node] > 0
				? "\u00b1" + words.amount(Math.sqrt(shape.variance[node]), unit)
				: "",
			verdict.text(found, known),
		];
	}

	#row({ node, level, parent, more }) {
		const indent = el("span", { class: "indent" });
		indent.style.width = Math.min(level - 1, 40) * 12 + "px";
		if (more)
			return el(
				"tr",
				{ class: "more", role: "row", "aria-level": level },
				el("td", { colspan: 3 }),
				el(
					"td",
					{},
					indent,
					el(
						"button",
						{
							type: "button",
							class: "link",
							onclick: () => {
								this.full.add(node);
								this.#draw();
							},
						},
						more + " more",
					),
				),
			);
		const { shape } = this,
			frame = shape.frameOf(node),
			numbers = this.#numbers(node);
		const hit = this.found && frame >= 0 && this.found.frames[frame];
		const within = shape.measure.isDiff && !shape.verdict(node).sure;
		const place =
			frame >= 0
				? [
						shape.graph.place(frame) && words.file(shape.graph.place(frame)),
						shape.graph.modules[frame] && words.file(shape.graph.modules[frame]),
					]
						.filter(Boolean)
						.join(" \u00b7 ")
				: "";
		return el(
			"tr",
			{
				role: "row",
				"aria-level": level,
				"aria-expanded": parent ? String(this.open.has(node)) : null,
				tabindex: node === this.current ? 0 : -1,
				"data-node": node,
				class: (hit ? "hit" : "") + (within ? " within" : ""),
				onclick: () => this.#toggle(node),
				onkeydown: event => this.#key(event, node),
				onfocus: () => {
					this.current = node;
				},
			},
			...numbers.map(text => el("td", { role: "gridcell", class: "number" }, text)),
			el(
				"td",
				{ role: "gridcell" },
				indent,
				el(
					"span",
					{ class: "twist", "aria-hidden": "true" },
					parent ? (this.open.has(node) ? "\u25be" : "\u25b8") : "\u00b7",
				),
				el("span", { class: "mono", title: shape.name(node) }, shape.label(node)),
				hit ? el("span", { class: "tag" }, "found") : "",
				el("span", { class: "quiet place" }, place),
			),
		);
	}

	#draw(focus) {
		const diff = this.shape.measure.isDiff,
			heads = diff
				? ["change", "error", "verdict", "function"]
				: ["value", "error", "share", "function"];
		const table = el(
			"table",
			{ class: "rows outline", role: "treegrid", "aria-label": "Call tree" },
			el(
				"thead",
				{},
				el(
					"tr",
					{ role: "row" },
					...heads.map((text, i) =>
						el(
							"th",
							{
								scope: "col",
								role: "columnheader",
								class: i < 3 ? "number" : "",
							},
							text,
						),
					),
				),
			),
			el("tbody", {}, ...this.#rows().map(row => this.#row(row))),
		);
		this.host.replaceChildren(
			el(
				"p",
				{ class: "quiet" },
				"Arrow keys move, Right opens and Left closes, S shows callers and callees.",
			),
			el("div", { class: "scroll" }, table),
		);
		if (focus !== undefined) this.#focus(focus);
	}

	#focus(node) {
		const line = this.host.querySelector("tr[data-node='" + node + "']");
		line && line.focus();
	}

	#toggle(node, want) {
		if (getSelection().toString()) return;
		if (want === false || (want === undefined && this.open.has(node))) this.open.delete(node);
		else this.#openPath(node);
		this.current = node;
		this.#draw(node);
	}

	#key(event, node) {
		const lines = [...this.host.querySelectorAll("tr[data-node]")],
			at = lines.indexOf(event.currentTarget);
		const go = i => lines[i] && lines[i].focus();
		switch (event.key) {
			case "ArrowDown":
				go(at + 1);
				break;
			case "ArrowUp":
				go(at - 1);
				break;
			case "Home":
				go(0);
				break;
			case "End":
				go(lines.length - 1);
				break;
			case "ArrowRight":
				this.open.has(node) ? go(at + 1) : this.#toggle(node, true);
				break;
			case "ArrowLeft":
				this.open.has(node) ? this.#toggle(node, false) : this.#focus(this.shape.parent[node]);
				break;
			case "Enter":
			case " ":
				this.#toggle(node);
				break;
			case "s":
			case "S":
				this.shape.frameOf(node) >= 0 && this.actions.sandwich(this.shape.frameOf(node));
				break;
			default:
				return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}
