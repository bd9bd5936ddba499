// Which view is in front, by the address; keys, colours, and the beat.

import { h } from "./dom.js";
import { follow, tell, toggle } from "./live.js";
import * as overview from "./overview.js";
import * as chains from "./chains.js";
import * as chain from "./chain.js";
import * as contracts from "./contracts.js";
import * as sessions from "./sessions.js";
import * as incidents from "./incidents.js";
import * as coverage from "./coverage.js";
import * as pipeline from "./pipeline.js";

const VIEWS = { overview, chains, chain, contracts, sessions, incidents, coverage, pipeline };
const main = document.getElementById("main");
let leaving = null;

/** Shows what the address names. `moved`: somebody followed a link, so the focus goes along. */
async function show(moved) {
  const params = Object.fromEntries(new URLSearchParams(location.search));
  const name = VIEWS[params.view] ? params.view : "overview";
  leaving?.abort();
  const stay = leaving = new AbortController();
  follow(null);
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.dataset.view === name || (name === "chain" && link.dataset.view === "chains");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = h("div", { class: `view view-${name}` });
  const view = VIEWS[name].open(place, params, { signal: stay.signal });
  document.title = `${view.title} · mcp-verdict`;
  main.replaceChildren(place);
  if (moved) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  try {
    await view.refresh();
    tell(null);
  } catch (error) {
    if (error.name === "AbortError") return;
    tell(error.message);
  }
  if (!stay.signal.aborted) follow(view.refresh);
}

/** Another address of this page. */
function go(href) {
  history.pushState(null, "", href);
  return show(true);
}

addEventListener("popstate", () => show(true));

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !plain) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});

// Keys.

function step(by) {
  const lines = [...main.querySelectorAll("a.line")];
  const at = lines.indexOf(document.activeElement);
  const next = lines[at < 0 ? (by > 0 ? 0 : lines.length - 1) : Math.min(Math.max(at + by, 0), lines.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

async function search() {
  if (!document.getElementById("text")) await go("?view=chains");
  document.getElementById("text")?.focus();
}

const KEYS = {
  "/": search,
  "?": () => document.getElementById("keys").showModal(),
  j: () => step(1),
  k: () => step(-1),
  l: toggle,
};
for (const [at, name] of ["", "chains", "contracts", "sessions", "incidents", "coverage", "pipeline"].entries()) {
  KEYS[at + 1] = () => go(name ? `?view=${name}` : "?");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const writing = event.target.closest("input, select, textarea");
  if (writing && event.key === "Escape") writing.blur();
  if (writing || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.getElementById("live").addEventListener("click", toggle);
document.getElementById("help").addEventListener("click", KEYS["?"]);

// Colours: as the system has them, or as chosen here.

const THEMES = ["system", "light", "dark"];
const theme = document.getElementById("theme");

function remembered() {
  try {
    return localStorage.getItem("theme") ?? "system";
  } catch {
    return "system";
  }
}

function paint(name) {
  const root = document.documentElement;
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  theme.setAttribute("aria-label", `Colours: ${name === "system" ? "as the system" : name}`);
  theme.title = theme.getAttribute("aria-label");
  theme.dataset.name = name;
}

theme.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(theme.dataset.name) + 1) % THEMES.length];
  paint(next);
  try {
    localStorage.setItem("theme", next);
  } catch {
    // A browser that keeps nothing shows it until it is closed.
  }
});

paint(remembered());
show(false);
