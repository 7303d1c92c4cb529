// SPDX-License-Identifier: Apache-2.0
"use strict";

/* Which view is shown, and what all views share: theme, keys, errors. */
(() => {
	const THEME = "heaptap-theme";

	function trouble(error) {
		$("trouble").hidden = !error;
		$("trouble").textContent = error ? error.message || String(error) : "";
	}

	function stored(value) {
		try {
			if (value) localStorage.setItem(THEME, value);
			return localStorage.getItem(THEME);
		} catch (error) {
			return value;
		}
	}

	function theme(value) {
		document.documentElement.dataset.theme = value;
		profile.redraw();
	}

	function otherTheme() {
		const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
		stored(next);
		theme(next);
	}

	const dark = matchMedia("(prefers-color-scheme: dark)");
	document.documentElement.dataset.theme = stored() || (dark.matches ? "dark" : "light");
	dark.addEventListener("change", () => stored() || theme(dark.matches ? "dark" : "light"));

	async function show() {
		const state = address.read(),
			one = source.embedded || state.pid || state.service || state.id;
		trouble(null);
		tip.show(null);
		$("list").hidden = Boolean(one);
		$("profile").hidden = !one;
		$("where").replaceChildren(
			...(source.embedded || !one
				? []
				: [
						el("a", { href: "#" }, "processes"),
						" \u203a ",
						state.service || (state.pid ? "pid " + state.pid : "profile"),
					]),
		);
		try {
			if (one) {
				list.stop();
				await profile.open(state, trouble);
			} else {
				profile.leave();
				document.title = "heaptap";
				await list.show({
					trouble,
					open: process => go(list.place(process)),
				});
			}
		} catch (error) {
			trouble(error);
		}
		document.documentElement.dataset.ready = "1";
	}

	function go(state) {
		address.write(state, true);
		return show();
	}

	const onProfile = action => () => {
		if (!$("profile").hidden) action();
	};
	const tab = name => onProfile(() => $("tab-" + name) && profile.change({ tab: name }, true));
	const keys = {
		"/": onProfile(() => {
			$("search").focus();
			$("search").select();
		}),
		Escape: onProfile(() => profile.whole()),
		"?": () => $("help").showModal(),
		d: otherTheme,
		c: onProfile(() => profile.copy()),
		t: onProfile(() => profile.nextType()),
		i: onProfile(() => {
			$("inverted").click();
		}),
		l: onProfile(() => {
			if (!source.embedded) $("lines").click();
		}),
		s: onProfile(() => profile.sandwichCurrent()),
		1: tab("flame"),
		2: tab("table"),
		3: tab("tree"),
		4: tab("leaks"),
		5: tab("growth"),
	};

	addEventListener("keydown", event => {
		const typing = event.target.closest("input,select,textarea,dialog");
		if (
			event.ctrlKey ||
			event.metaKey ||
			event.altKey ||
			(typing && event.key !== "Escape") ||
			document.querySelector("dialog[open]")
		)
			return;
		const action = keys[event.key] || keys[event.key.toLowerCase()];
		if (!action) return;
		if (event.key === "Escape" && typing) typing.blur();
		action();
		event.preventDefault();
	});
	$("theme").addEventListener("click", otherTheme);
	$("keys").addEventListener("click", () => $("help").showModal());
	$("home").addEventListener("click", event => {
		event.preventDefault();
		source.embedded ? profile.whole() : go({ ...address.USUAL });
	});
	addEventListener("popstate", show);
	addEventListener("hashchange", show);
	if (source.embedded) document.documentElement.dataset.embedded = "1";
	show();
})();
