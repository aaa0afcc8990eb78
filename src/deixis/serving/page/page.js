// The page: asks the public endpoints for all three orders, and plays what they answer.

import { Run } from "./run.js";
import { ask, asked, trouble } from "./server.js";
import { drawDecisions, drawPanel, drawText, element, layText } from "./view.js";

const ORDERS = ["confidence", "natural", "local"];
const PACE = 1400; // milliseconds a step
const at = (id) => document.getElementById(id);
const state = { runs: {}, order: "confidence", place: 0, picked: null, timer: null, asking: null };
const run = () => state.runs[state.order];

/** A document as JSON goes to /disambiguate with its mentions, any other text to /link. */
function question(text) {
  try {
    const record = JSON.parse(text);
    if (typeof record?.text === "string" && Array.isArray(record.mentions)) return ["/disambiguate", record];
  } catch {
    // Not JSON: a plain text.
  }
  return ["/link", { text }];
}

async function resolve() {
  const text = at("text").value;
  if (!text.trim()) return complain("There is no text yet: paste one, or pick an example.");
  state.asking?.abort();
  const asking = (state.asking = new AbortController());
  stop();
  at("error").hidden = true;
  at("status").textContent = "Reading…";
  const [path, body] = question(text);
  try {
    const settings = { trace: true, windows: "simple" };
    const { signal } = asking;
    const answers = await Promise.all(ORDERS.map((order) => ask(path, { body: { ...body, order, ...settings }, signal })));
    if (signal.aborted) return;
    show(answers, text);
  } catch (error) {
    if (asking.signal.aborted) return;
    asking.abort(); // the other two orders are of no use
    complain(trouble(error));
  }
}

function complain(message) {
  at("status").textContent = "";
  at("result").hidden = true;
  at("error").textContent = message;
  at("error").hidden = false;
  at("ask").open = true;
}

function show(answers, text) {
  const local = new Run(answers[ORDERS.indexOf("local")]);
  ORDERS.forEach((order, index) => (state.runs[order] = order === "local" ? local : new Run(answers[index], local)));
  if (!local.mentions.length) return complain("No name was found in this text.");
  at("result").hidden = false;
  at("ask").open = false;
  at("intro").hidden = true;
  state.text = text;
  lay(0);
  const answered = local.mentions.filter((_, mention) => run().answer(mention) !== null).length;
  at("status").textContent = `${counted(local.mentions.length, "mention")} found, ${answered} answered.`;
  at("result").focus({ preventScroll: true }); // the form that was used is folded away
}

const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** The address that fills this text in and links it; what stands behind # stays in the browser. */
function shareAddress() {
  const order = state.order === ORDERS[0] ? {} : { order: state.order };
  return `/#${new URLSearchParams({ text: state.text, ...order })}`;
}

async function share(event) {
  event.preventDefault();
  history.replaceState(null, "", at("share").href);
  try {
    await navigator.clipboard.writeText(at("share").href);
    at("status").textContent = "The link is copied.";
  } catch {
    at("status").textContent = "The link is in the address bar."; // no clipboard without https, or none allowed
  }
}

/** Fill in and link the text of the address, where it has one. */
function open() {
  const text = asked().get("text");
  if (text === null) return;
  const order = asked().get("order");
  state.order = ORDERS.includes(order) ? order : ORDERS[0];
  at("orders").querySelector(`[value="${state.order}"]`).checked = true;
  at("text").value = text;
  resolve();
}

function lay(place) {
  state.picked = null;
  layText(at("reading"), run(), pick);
  at("share").href = shareAddress();
  at("slider").max = run().last;
  sayChanges();
  go(place);
}

/** Mentions that another order answers otherwise, in this order's view. */
function differing(other) {
  const found = new Set();
  run().mentions.forEach((_, mention) => {
    if (run().answer(mention) !== state.runs[other].answer(mention)) found.add(mention);
  });
  return found;
}

function sayChanges() {
  const others = ORDERS.filter((order) => order !== state.order);
  const same = others.filter((other) => !differing(other).size);
  const parts = others.filter((other) => !same.includes(other)).map((other) => {
    const found = [...differing(other)];
    const answer = (order, mention) => state.runs[order].answer(mention) ?? "left open";
    const some = found.slice(0, 3).map((mention) => `${run().surface(mention)}: ${answer(state.order, mention)}, not ${answer(other, mention)}`);
    return `${found.length} ${found.length > 1 ? "answers differ" : "answer differs"} from ${other} (${some.join("; ")}${found.length > 3 ? "; …" : ""})`;
  });
  if (same.length) parts.unshift(`the same answers as ${same.join(" and ")}`);
  at("changes").textContent = `${state.order[0].toUpperCase()}${state.order.slice(1)} order: ${parts.join(", ")}.`;
}

function go(place) {
  state.place = Math.max(0, Math.min(run().last, place));
  const baseline = state.order === "local" ? "confidence" : "local";
  drawText(at("reading"), run(), state.place, state.picked, differing(baseline));
  drawPanel(at("panel"), run(), state.order, state.place, state.picked, pick);
  drawDecisions(at("decisions"), run(), state.place, (target) => { stop(); state.picked = null; go(target); }, pick);
  at("slider").value = state.place;
  at("place").textContent = `${state.place} of ${run().last}`;
  at("slider").setAttribute("aria-valuetext", `step ${state.place} of ${run().last}`);
  at("back").disabled = state.place === 0;
  at("forth").disabled = state.place === run().last;
}

/** Bring what was decided just now into view, between the controls and the panel. */
function follow() {
  at("reading").querySelector("mark.current")?.scrollIntoView({ block: "nearest" });
}

function pick(mention) {
  const former = state.picked;
  const inside = at("panel").contains(document.activeElement);
  state.picked = mention;
  go(state.place);
  if (inside) at("panel").focus({ preventScroll: true }); // what was pressed is gone
  if (mention === null && former !== null) at("reading").querySelector(`[data-mention="${former}"]`)?.focus();
}

function stop() {
  clearInterval(state.timer);
  state.timer = null;
  at("play").textContent = "Play";
  at("play").setAttribute("aria-pressed", "false");
}

function play() {
  if (state.timer !== null) return stop();
  state.picked = null;
  go(state.place === run().last ? 0 : state.place + 1);
  follow();
  at("play").textContent = "Pause";
  at("play").setAttribute("aria-pressed", "true");
  state.timer = setInterval(() => {
    go(state.place + 1);
    follow();
    if (state.place === run().last) stop();
  }, PACE);
}

function step(place) {
  stop();
  state.picked = null;
  go(place);
  follow();
}

function onkey(event) {
  const typing = event.target.closest("textarea, input, select") || event.ctrlKey || event.metaKey || event.altKey;
  if (at("result").hidden || typing) return;
  const moves = { ArrowLeft: state.place - 1, ArrowRight: state.place + 1, Home: 0, End: run().last };
  if (event.key in moves) step(moves[event.key]);
  else if (event.key === "p" || event.key === "P") play();
  else if (event.key === "Escape") pick(null);
  else return;
  event.preventDefault();
}

/** Whether this server's model knows the names of an example; one without a store needs candidates with the text. */
async function isKnown(example) {
  const answer = await fetch(`/candidates?surface=${encodeURIComponent(example.knows)}`);
  return answer.ok ? (await answer.json()).candidates.length > 0 : "mentions" in example.document;
}

async function loadExamples() {
  const all = await (await fetch("/page/examples.json")).json();
  const known = await Promise.all(all.map(isKnown));
  const examples = all.filter((_, index) => known[index]);
  at("examples").append(...examples.map((example, index) => element("option", { value: String(index) }, example.name)));
  at("examples").addEventListener("change", () => {
    const example = examples[Number(at("examples").value)];
    if (at("examples").value === "" || !example) return;
    at("text").value = example.document.mentions ? JSON.stringify(example.document, null, 1) : example.document.text;
    resolve();
  });
}

document.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); resolve(); });
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); resolve(); }
});
at("orders").addEventListener("change", (event) => {
  stop();
  const ended = state.place === run().last;
  state.order = event.target.value;
  lay(ended ? run().last : 0);
});
at("slider").addEventListener("input", () => step(Number(at("slider").value)));
at("back").addEventListener("click", () => step(state.place - 1));
at("forth").addEventListener("click", () => step(state.place + 1));
at("play").addEventListener("click", play);
at("share").addEventListener("click", share);
addEventListener("hashchange", open);
document.addEventListener("keydown", onkey);
loadExamples();
open();
