// SPDX-License-Identifier: Apache-2.0
"use strict";

/* The commands to type while there is nothing to see. */
const empty = (() => {
	const LIVE = [
		["heaptap record ./server", "a program to start"],
		["heaptap attach PID", "one that runs already"],
		["heaptap serve FOLDER", "profiles that were written before"],
	];
	const FILES = [
		["heaptap record -o FOLDER/ ./server", "writes into this folder; what it writes appears here"],
		["heaptap record -o FOLDER/ -P PID", "the same of a program that runs already"],
		["heaptap serve", "without a folder: what is recorded now"],
	];

	function line([command, about]) {
		const show = () => prompt("Command", command);
		const copy = () => {
			if (!navigator.clipboard) show();
			else navigator.clipboard.writeText(command).then(() => say("Copied."), show);
		};
		return el(
			"li",
			{},
			el("code", {}, command),
			el("button", { type: "button", "aria-label": "copy " + command, onclick: copy }, "copy"),
			el("span", { class: "quiet" }, about),
		);
	}

	/* answer: of /api/v1/processes. A server that was given a folder shows files. */
	function rows(answer) {
		const files = answer.files && !answer.samplers;
		return [
			el(
				"p",
				{ class: "empty" },
				files ? "This server's files have no profile yet." : "Nothing is recorded here yet.",
			),
			el("ul", { class: "commands" }, ...(files ? FILES : LIVE).map(line)),
			files
				? ""
				: el(
						"p",
						{ class: "quiet empty" },
						"Processes of the daemon are shown to root and the group heaptap, " +
							"another user's to root.",
					),
		];
	}

	return { rows };
})();
