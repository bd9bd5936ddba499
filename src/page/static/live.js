// The beat of the page: the view in front asks again every two seconds while the page is seen and
// nobody has stopped it.

const EVERY = 2000;

let refresh = null;
let timer = null;
let stopped = false;
let failures = 0;

const trouble = () => document.getElementById("trouble");

/** Says what is wrong, or with nothing that all is well. */
export function tell(text) {
  const place = trouble();
  place.hidden = !text;
  if (place.textContent !== (text ?? "")) place.textContent = text ?? "";
}

async function beat() {
  timer = null;
  if (stopped || document.hidden || !refresh) return;
  const mine = refresh;
  try {
    await mine();
    failures = 0;
    if (mine === refresh) tell(null);
  } catch (error) {
    if (error.name !== "AbortError" && mine === refresh) {
      failures += 1;
      tell(error.message);
    }
  }
  schedule();
}

function schedule() {
  if (timer !== null) clearTimeout(timer);
  timer = stopped || !refresh ? null : setTimeout(beat, Math.min(EVERY * 2 ** Math.min(failures, 3), 15000));
}

/** From now on this is what is asked again. */
export function follow(next) {
  refresh = next;
  failures = 0;
  schedule();
}

export function toggle() {
  stopped = !stopped;
  const button = document.getElementById("live");
  button.setAttribute("aria-pressed", String(!stopped));
  button.lastChild.textContent = stopped ? "Stopped" : "Live";
  if (!stopped) beat();
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && timer === null) beat();
});
