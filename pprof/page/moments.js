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
		this.others = [];
		this.running = 0;
		this.isRunning = false;
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

	/* answer: of /api/v1/timeline, oldest first. A point without an id is known of the process, but there
	 * is no profile of it. */
	load(answer) {
		this.isRunning = Boolean(answer.process && answer.process.running);
		this.isSum = answer.points.some(point => point.processes !== undefined);
		this.running = this.isRunning && answer.process.pid ? answer.process.pid : 0;
		/* There is no profile of a sum, to compare with. */
		if (!answer.process || !answer.process.pid) this.others = [];
		/* In the line of a service, moments at which a process was not known would look like dips. */
		const whole = answer.points.filter(point => !point.missing);
		this.points = (whole.length > 1 ? whole : answer.points).map(point => ({
			time: point.time_ns / 1e6,
			inuse: point.inuse,
			error: point.error || 0,
			rss: point.rss,
			id: point.id || "",
			cause: point.cause,
			isChoosable: Boolean(point.id),
		}));
		if (this.isRunning && this.points.length) this.points[this.points.length - 1].isChoosable = true;
	}

	clear() {
		this.points = [];
		this.running = 0;
		this.isRunning = this.isSum = false;
	}

	/* For a service that has ended, "" means the last profile of each process, which is no moment. */
	#isNoMoment() {
		return !this.isRunning && (this.isSum || !this.newest());
	}

	newest() {
		const last = this.points.findLast(point => point.id);
		return last ? last.id : "";
	}

	/* The id that "" stands for: a running process or service as it is now, or else the newest
	 * profile. */
	current() {
		return this.running ? "now-" + this.running : this.isRunning ? "now" : this.newest();
	}

	/* The point of a profile, or the last point. */
	find(id) {
		if (!id && this.isSum && this.#isNoMoment()) return null;
		return (
			(id ? this.points.find(point => point.id === id) : this.points[this.points.length - 1]) ||
			null
		);
	}

	show(id, base) {
		const { points } = this,
			last = points.length - 1;
		$("time").hidden = !points.length;
		if (!points.length) return;
		const number = id => points.findIndex(point => point.id === id);
		const at = id
			? number(id)
			: this.isSum && this.#isNoMoment()
				? -1
				: this.isRunning || !this.newest()
					? last
					: number(this.newest());
		this.chart.show(points, at, base ? number(base) : -1);
		document.querySelector("#time .hint").textContent =
			points.filter(point => point.isChoosable).length > 1
				? "click: a moment \u00b7 drag: compare two"
				: "there are no profiles of earlier moments";
		const options = points
			.filter(point => point.id)
			.reverse()
			.map(point => [point.id, words.moment(point.time) + "  " + Moments.#inUse(point)]);
		const now = this.isRunning
			? [["", "now"]]
			: this.#isNoMoment()
				? [["", "the last of each process"]]
				: [];
		Moments.#fill("moment", id || (now.length ? "" : this.newest()), [...now, ...options]);
		Moments.#fill("base", base, [["", "nothing"], ...options, ...this.others]);
		$("moments").hidden = !options.length && !this.others.length;
	}

	/* The chosen profile is in the list, whatever process it is of. */
	static #fill(id, value, options) {
		const known = options.some(([option]) => option === value);
		const all = known ? options : [...options, [value, "another: " + value]];
		$(id).replaceChildren(...all.map(([value, text]) => el("option", { value }, text)));
		$(id).value = value;
	}

	/* The newest profiles of other processes, to compare with: processes as /api/v1/processes has them,
	 * profiles as /api/v1/profiles. */
	offer(processes, profiles, pid) {
		const newest = new Map();
		for (const profile of profiles) if (profile.kind === "live") newest.set(profile.pid, profile);
		const name = of => (of.name || of.program || "unknown program") + " pid " + of.pid;
		const running = processes.filter(process => process.running);
		const isOther = of => String(of.pid) !== pid;
		const isOver = of => !running.some(process => process.pid === of.pid);
		const when = profile => ", " + words.moment(profile.time_ns / 1e6);
		this.others = [
			...running.filter(isOther).map(process => ["now-" + process.pid, name(process) + ", now"]),
			...[...newest.values()]
				.filter(profile => isOther(profile) && isOver(profile))
				.map(profile => [profile.id, name(profile) + when(profile)]),
		];
	}
}
