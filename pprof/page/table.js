// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * A table that is sorted by any of its columns: columns are { key, title, number, of(row) -> value to sort
 * by, cell(row) -> text or element, hint, name: it names the row }. Rows are added as they are asked for,
 * so that ten thousand functions cost what a screen of them costs.
 */
class Table {
	static STEP = 200;

	/* keep(row, sort): is the row shown, in this order? left(count): called with the number of rows that
	 * are not shown. below(row): rows that belong under it. */
	constructor(host, { caption, columns, sort, open, sorted, keep, left, below }) {
		Object.assign(this, { host, caption, columns, open, sorted, keep, left, below });
		this.sort = columns.some(column => column.key === sort.key)
			? sort
			: { key: columns[0].key, down: true };
	}

	show(rows, about) {
		this.rows = rows;
		this.about = about;
		this.shown = Table.STEP;
		this.#draw();
	}

	#ordered(all) {
		const column = this.columns.find(({ key }) => key === this.sort.key),
			way = this.sort.down ? -1 : 1;
		const rows = this.keep ? all.filter(row => this.keep(row, this.sort)) : all.slice();
		rows.sort((a, b) => {
			const x = column.of(a),
				y = column.of(b);
			return way * (typeof x === "string" ? x.localeCompare(y) : x - y) || a.number - b.number;
		});
		return this.below
			? rows.flatMap(row => [row, ...(row.under ? [] : this.#ordered(this.below(row)))])
			: rows;
	}

	#by(column) {
		const same = this.sort.key === column.key;
		this.sort = { key: column.key, down: same ? !this.sort.down : column.number };
		this.#draw();
		this.host.querySelector("[data-key='" + column.key + "']").focus();
		this.sorted && this.sorted(this.sort);
	}

	static #class(column) {
		return [column.number ? "number" : "", column.class || ""].filter(Boolean).join(" ");
	}

	#head(column) {
		const by = this.sort.key === column.key,
			order = this.sort.down ? "descending" : "ascending";
		const sign = by ? (this.sort.down ? "\u25be" : "\u25b4") : "";
		const arrow = el("span", { class: "arrow", "aria-hidden": "true" }, sign);
		return el(
			"th",
			{
				scope: "col",
				class: Table.#class(column),
				"aria-sort": by ? order : "none",
			},
			el(
				"button",
				{
					type: "button",
					class: "sort",
					"data-key": column.key,
					title: column.hint,
					onclick: () => this.#by(column),
				},
				...(column.number ? [arrow, column.title] : [column.title, arrow]),
			),
		);
	}

	#row(row) {
		const line = el(
			"tr",
			{ class: row.class || "" },
			...this.columns.map(column => {
				const properties = { class: Table.#class(column), "data-title": column.title };
				if (column.name) return el("th", { scope: "row", ...properties }, column.cell(row));
				return el("td", properties, column.cell(row));
			}),
		);
		if (this.open)
			line.addEventListener("click", event => {
				if (!getSelection().toString() && !event.target.closest("button,a")) this.open(row);
			});
		return line;
	}

	#draw() {
		const rows = this.#ordered(this.rows),
			left = this.keep ? this.rows.length - rows.length : 0,
			table = el("table", { class: "rows" }),
			about = [this.caption, this.about, left ? this.left(left) : ""].filter(Boolean).join(" ");
		table.append(
			el("caption", { class: "quiet" }, about),
			el("thead", {}, el("tr", {}, ...this.columns.map(column => this.#head(column)))),
		);
		const body = el("tbody");
		for (const row of rows.slice(0, this.shown)) body.append(this.#row(row));
		table.append(body);
		const more =
			rows.length > this.shown
				? el(
						"button",
						{
							type: "button",
							class: "more",
							onclick: () => {
								this.shown += Table.STEP * 5;
								this.#draw();
							},
						},
						"Show more: " +
							(rows.length - this.shown).toLocaleString("en") +
							" rows are left",
					)
				: null;
		this.host.replaceChildren(el("div", { class: "scroll" }, table), ...(more ? [more] : []));
		if (!rows.length) this.host.append(el("p", { class: "quiet empty" }, "Nothing."));
	}
}
