// SPDX-License-Identifier: Apache-2.0
"use strict";

/* Where profiles come from: the profile in this file, or the server of this page. */
const source = (() => {
	const embedded = $("data") ? JSON.parse($("data").textContent) : null;
	const KEY = "heaptap-token";
	let asking = null;

	/* In some browsers a page from a file has no storage. */
	function token(value) {
		try {
			if (value !== undefined) sessionStorage.setItem(KEY, value);
			return sessionStorage.getItem(KEY) || "";
		} catch (error) {
			return "";
		}
	}

	/* Asks once, however many requests wait for the answer. */
	function ask(wrong) {
		asking ||= new Promise(resolve => {
			$("ask-wrong").hidden = !wrong;
			$("token").value = "";
			$("ask").addEventListener(
				"close",
				() => {
					asking = null;
					resolve(token($("token").value.trim()));
				},
				{ once: true },
			);
			$("ask").showModal();
		});
		return asking;
	}

	/* Parameters that are undefined, null or "" are left out. */
	function address(path, parameters) {
		const query = new URLSearchParams();
		for (const [name, value] of Object.entries(parameters || {}))
			if (value !== undefined && value !== null && value !== "") query.set(name, value);
		return "api/v1/" + path + (String(query) ? "?" + query : "");
	}

	async function request(path, parameters, method) {
		for (let asked = 0; ; asked++) {
			const mine = token();
			let answer;
			try {
				answer = await fetch(address(path, parameters), {
					method: method || "GET",
					cache: "no-store",
					headers: mine ? { Authorization: "Bearer " + mine } : {},
				});
			} catch (error) {
				throw new Error("The server does not answer.");
			}
			if (answer.status === 401 && asked < 5) {
				if (mine === token())
					/* no other request has got a token meanwhile */
					await ask(Boolean(mine));
				continue;
			}
			if (!answer.ok) throw new Error(await reason(answer));
			return answer;
		}
	}

	async function reason(answer) {
		const text = await answer.text();
		try {
			return JSON.parse(text).error || text;
		} catch (error) {
			return text.trim().split("\n")[0] || answer.status + " " + answer.statusText;
		}
	}

	async function json(path, parameters) {
		return (await request(path, parameters)).json();
	}

	/* Saves a file for the user. It sends the token, which a plain link would not. */
	async function download(parameters, name) {
		const blob = await (await request("profile", parameters)).blob(),
			link = el("a", { download: name });
		link.setAttribute("href", URL.createObjectURL(blob));
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.getAttribute("href")), 10000);
	}

	return {
		embedded,
		json,
		download,
		hasToken: () => token() !== "",
		snapshot: pid => request("snapshot", { pid }, "POST"),
	};
})();
