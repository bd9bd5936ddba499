// Questions to the program, each answered from what it has published. An answer that has not
// changed is not sent again.

const known = new Map();

/** How far the program's clock is ahead of this one, in milliseconds. */
export let ahead = 0;

/** The program's time, in milliseconds since 1970. */
export const now = () => Date.now() + ahead;

/**
 * The answer to a path, or throws with a sentence. `name` stands for the question: it remembers the
 * last answer, so that asking again costs little.
 */
export async function ask(path, params = {}, signal) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value));
  const url = query.size ? `${path}?${query}` : path;
  const before = known.get(url);
  const headers = before ? { "if-none-match": before.tag } : {};
  let response;
  try {
    response = await fetch(url, { headers, signal, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("mcp-verdict does not answer. Trying again.");
  }
  const date = Date.parse(response.headers.get("date") ?? "");
  if (!Number.isNaN(date) && Math.abs(date - Date.now()) > 2000) ahead = date - Date.now();
  if (response.status === 304 && before) return before.body;
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(body.message ?? `mcp-verdict answered ${response.status}.`);
    error.status = response.status;
    throw error;
  }
  remember(url, response.headers.get("etag"), body);
  return body;
}

function remember(url, tag, body) {
  if (!tag) return;
  known.delete(url);
  known.set(url, { tag, body });
  if (known.size > 12) known.delete(known.keys().next().value);
}
