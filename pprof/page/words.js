// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * Numbers as people read them, each with its error. The words are those of `heaptap report`
 * (pprof/text/amount), so page and terminal say the same.
 */
const words = (() => {
	const FEW_SAMPLES = 5; /* fewer show their number: ESTIMATE_FEW_SAMPLES of pprof/model/estimate.h */

	function scaled(value, units, step, gap) {
		let size = Math.abs(value),
			unit = 0;
		for (; size >= step - 0.05 && unit < units.length - 1; unit++) size /= step;
		return (
			(value < 0 ? "\u2212" : "") +
			size.toFixed(unit ? 1 : 0) +
			(unit ? gap : gap && " ") +
			units[unit]
		);
	}

	function bytes(value) {
		return scaled(value, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], 1024, " ");
	}

	function count(value) {
		if (Math.abs(value) < 1e6)
			return (value < 0 ? "\u2212" : "") + Math.abs(Math.round(value)).toLocaleString("en");
		return scaled(value, ["", "k", "M", "G", "T", "P", "E"], 1000, "");
	}

	function nanoseconds(value) {
		return scaled(value, ["ns", "\u00b5s", "ms", "s"], 1000, " ");
	}

	function amount(value, unit) {
		return unit === "bytes"
			? bytes(value)
			: unit === "nanoseconds"
				? nanoseconds(value)
				: count(value);
	}

	/* A change, with its sign. */
	function change(value, unit) {
		return (value > 0 ? "+" : "") + amount(value, unit);
	}

	function percent(share) {
		const value = 100 * share;
		return (Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0)) + "%";
	}

	/* How sure a value is: "\u00b19.9%", "1 sample", "exact"; "" if that is not known. */
	function doubt(value, samples, variance, known) {
		if (!known || value === 0) return "";
		if (!(variance > 0)) return "exact";
		const number = Math.round(samples); /* null if it is not known */
		if (Number.isFinite(samples) && samples < FEW_SAMPLES - 0.5)
			return number < 1 ? "<1 sample" : number === 1 ? "1 sample" : number + " samples";
		return "\u00b1" + percent(Math.sqrt(variance) / Math.abs(value));
	}

	/* "103.6 MiB \u00b1 7.1 MiB" */
	function estimate(value, variance, unit) {
		return amount(value, unit) + (variance > 0 ? " \u00b1 " + amount(Math.sqrt(variance), unit) : "");
	}

	function isFew(samples, variance) {
		return variance > 0 && samples < FEW_SAMPLES - 0.5;
	}

	/* "1.2 MiB a minute", in the unit of time that gives a readable number: pprof/export/growth_text */
	function rate(per_hour) {
		const units = [
			["a second", 1 / 3600],
			["a minute", 1 / 60],
			["an hour", 1],
			["a day", 24],
		];
		const [name, hours] = units.find(([, hours]) => per_hour * hours >= 64 * 1024) || units[3];
		return bytes(per_hour * hours) + " " + name;
	}

	/* Why a graph is empty. By the law of rare events, with 95 % certainty there are fewer than 3
	 * samples' worth. That does not hold if something is known to be missing. */
	function nothing(measure, about) {
		if (measure.isDiff) return "Nothing is in these profiles.";
		if (measure.kind.all && measure.kind.all.value > 0) return "The filters select nothing.";
		if (measure.unit !== "bytes" || !measure.known || about.period <= 1) return "Nothing.";
		const bound =
			about.period > 0 && !about.not_seen ? ": less than " + bytes(3 * about.period) + " (95 %)" : "";
		return "Nothing sampled" + (about.running ? " yet" : "") + bound + ".";
	}

	const two = number => String(number).padStart(2, "0");

	function clock(ms) {
		const at = new Date(ms);
		return two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds());
	}

	function moment(ms) {
		const at = new Date(ms);
		return (
			at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate()) + " " + clock(ms)
		);
	}

	/* A length of time in its two largest units: "3 h 12 min". */
	function duration(ms) {
		const seconds = Math.round(Math.max(0, ms) / 1000);
		if (seconds < 60) return seconds + " s";
		if (seconds < 3600)
			return Math.floor(seconds / 60) + " min" + (seconds % 60 ? " " + (seconds % 60) + " s" : "");
		const hours = Math.floor(seconds / 3600);
		if (hours < 48)
			return (
				hours +
				" h" +
				(seconds % 3600 >= 60 ? " " + Math.floor((seconds % 3600) / 60) + " min" : "")
			);
		return Math.floor(hours / 24) + " d" + (hours % 24 ? " " + (hours % 24) + " h" : "");
	}

	/* The last part of a path. */
	function file(path) {
		return path.slice(path.lastIndexOf("/") + 1) || path;
	}

	return {
		bytes,
		count,
		amount,
		change,
		percent,
		doubt,
		estimate,
		isFew,
		nothing,
		rate,
		clock,
		moment,
		duration,
		file,
	};
})();
