// Draws one place of a run: the text, the panel, the list of decisions. Text only ever enters as text, never as HTML.

import { best } from "./run.js";
import { nameAddress } from "./server.js";

const SHOWN = 6; // candidates before "and … more"
const TICK = "The tick marks the probability before any answer, from the words alone.";
const INTRO = {
  confidence: "Press › or Play. Each step scores all open mentions and keeps the most certain answer; the next step sees it.",
  natural: "Press › or Play. Mentions are decided from left to right; each answer is seen by the next.",
  local: "One step decides all mentions, each from the words alone.",
};

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

export function percent(chance) {
  const number = chance > 0.995 && chance < 1 ? "99+" : chance > 0 && chance < 0.005 ? "<1" : Math.round(chance * 100);
  return `${number} %`;
}

export function bar(chance) {
  const made = element("div", { className: "bar" }, element("i"));
  made.firstChild.style.width = `${100 * chance}%`;
  return made;
}

/** Lay the text out once a run; `draw` then only changes classes. */
export function layText(target, run, onpick) {
  const parts = [];
  let position = 0;
  const order = run.mentions.map((_, index) => index).sort((a, b) => run.mentions[a].start - run.mentions[b].start);
  for (const mention of order) {
    const { start, end } = run.mentions[mention];
    if (start < position) continue; // it overlaps the one before: the list below has it
    parts.push(run.points.slice(position, start).join(""));
    const pick = (event) => {
      if (event.type === "click" || event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        onpick(mention);
      }
    };
    const mark = element("mark", { tabIndex: 0, role: "button", onclick: pick, onkeydown: pick });
    mark.dataset.mention = mention;
    mark.append(run.surface(mention), element("sup"));
    parts.push(mark);
    position = end;
  }
  target.replaceChildren(...parts, run.points.slice(position).join(""));
}

export function drawText(target, run, place, picked, differing) {
  const width = String(run.steps.at(-1)?.number ?? "").length; // figure spaces keep the room: no line moves with a step
  for (const mark of target.querySelectorAll("mark")) {
    const mention = Number(mark.dataset.mention);
    const state = run.state(mention, place);
    const shown = state === "current" || state === "decided";
    mark.className = state;
    mark.classList.toggle("chosen", mention === picked);
    mark.classList.toggle("differs", shown && differing.has(mention));
    const number = shown ? String(run.steps[run.places.get(mention) - 1].number) : state === "masked" ? "?" : "–";
    mark.querySelector("sup").textContent = number.padStart(width, "\u2007");
    const label = state === "masked" ? "still masked" : (run.answer(mention) ?? run.open(mention));
    mark.setAttribute("aria-label", `${run.surface(mention)}: ${label}`);
    mark.title = label;
  }
}

/** Draw the candidates with bars; a tick stands where each was before. */
function candidates(after, before, answer) {
  const ranked = [...after].sort((a, b) => b[1] - a[1]);
  const rows = ranked.slice(0, SHOWN).map(([title, chance]) => {
    const was = before?.get(title);
    const drawn = bar(chance);
    if (was !== undefined) {
      const tick = element("s");
      tick.style.width = `${100 * was}%`;
      drawn.append(tick);
    }
    const moved = was !== undefined && percent(was) !== percent(chance);
    const number = moved ? `${percent(was)} → ${percent(chance)}` : percent(chance);
    const name = title === answer ? element("b", {}, title) : element("span", {}, title);
    const head = element("div", { className: "name" }, name, element("span", { className: "number" }, number));
    return element("li", { className: title === answer ? "answer" : "" }, head, drawn);
  });
  const rest = ranked.length - SHOWN;
  if (rest > 0) rows.push(element("li", { className: "quiet" }, `and ${rest} more`));
  return element("ul", { className: "candidates" }, ...rows);
}

export const KNOWN_BY = {
  links: "Known by links to its article.",
  description: "Known by its description.",
  title: "Nothing but its title is known.",
};

const link = (href, text) => element("a", { href, target: "_blank", rel: "noreferrer noopener" }, `${text} ↗`);

/** A link to the page of an entity; of another scheme it would not be a page. */
export function pageLink(url, text) {
  return /^https?:\/\//.test(url ?? "") ? link(url, text) : null;
}

export function itemLink(wikidata) {
  return /^Q\d+$/.test(wikidata ?? "") ? link(`https://www.wikidata.org/wiki/${wikidata}`, wikidata) : null;
}

/** What is known of the entity, and links to its page, where it has one, and to its Wikidata item. */
function about(kind, { url, known_by: known, wikidata }) {
  const where = /^https:\/\/[^/]*\bwikipedia\.org\//.test(url) ? "Read the article on Wikipedia" : "Read about it";
  const facts = [kind && sentence(kind), KNOWN_BY[known]].filter(Boolean).map((fact) => `${fact} `);
  return element("p", { className: "about" }, ...facts, pageLink(url, where), " ", itemLink(wikidata));
}

function others(name) {
  return element("p", { className: "quiet" }, element("a", { href: nameAddress(name) }, `Who else is called ${name} here?`));
}

/** Draw how the probabilities of a mention moved over the steps. */
function history(run, mention) {
  const points = run.history(mention);
  if (points.length < 2) return null;
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "history");
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Probabilities over the steps");
  const add = (tag, attributes) => {
    const made = document.createElementNS(space, tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    svg.append(made);
  };
  for (const y of [0, 50, 100]) add("line", { x1: 0, x2: 100, y1: y, y2: y });
  const [first, end] = [points[0][0], points.at(-1)[0]];
  const titles = [...points.at(-1)[1]].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([title]) => title);
  for (const title of titles.reverse()) {
    const line = points.map(([index, chances]) => {
      const chance = chances.find((pair) => pair[0] === title)?.[1] ?? 0;
      return `${(100 * (index - first)) / (end - first)} ${100 - 100 * chance}`;
    });
    add("path", { d: "M" + line.join("L"), class: title === run.answer(mention) ? "answer" : "" });
  }
  const caption = `Scored ${points.length} times, from step ${run.steps[first].number} to ${run.steps[end].number}`;
  return element("div", {}, element("h4", {}, "Over the steps"), svg, element("p", { className: "quiet" }, caption));
}

function decidedNow(run, mention) {
  const resolution = run.mentions[mention].resolution;
  const at = run.places.get(mention) - 1;
  const asked = run.steps[at].open.get(mention);
  const after = asked ?? (resolution ?? run.mentions[mention]).alternatives ?? run.chances(mention, at) ?? [];
  const alone = run.local === run ? null : run.local.chances(mention, 0);
  const only = after.length === 1 && resolution?.known_by !== "title" ? "The only candidate: nothing to decide." : null;
  const note = resolution ? only : sentence(run.open(mention));
  return [
    element("h3", {}, run.surface(mention)),
    note && element("p", { className: "quiet" }, note),
    candidates(after, alone && new Map(alone), resolution?.entity),
    alone && after.length > 1 ? element("p", { className: "quiet" }, TICK) : null,
    resolution && about(run.mentions[mention].kind, resolution),
    others(run.surface(mention)),
  ];
}

function several(run, step, onpick) {
  const rows = step.decided.map((mention) => {
    const [title, chance] = best(run.chances(mention, 0) ?? []);
    const button = element("button", { type: "button", onclick: () => onpick(mention) }, run.surface(mention));
    return element("li", {}, element("span", { className: "chips" }, button), ` ${run.answer(mention) ?? "left open"} `,
      element("span", { className: "number" }, title ? percent(chance) : ""));
  });
  return [element("h3", {}, `${step.decided.length} mentions at once`), element("ul", { className: "moved" }, ...rows)];
}

function movedList(run, place, onpick) {
  const moved = run.moved(place).slice(0, 4);
  if (!moved.length) return null;
  const rows = moved.map(({ mention, before, after }) => {
    const [title, chance] = best(after);
    const [former] = best([...before]);
    const flip = former && former !== title;
    const was = before.has(title) ? `${percent(before.get(title))} → ` : "";
    return element("li", {},
      element("span", { className: "surface" }, run.surface(mention)), ": ",
      element("span", { className: flip ? "flip" : "" }, title), " ",
      element("span", { className: "number" }, was + percent(chance)),
      flip ? element("div", { className: "quiet" }, `before: ${former}`) : null);
  });
  return element("div", {}, element("h4", {}, "What this answer changed"), element("ul", { className: "moved" }, ...rows));
}

function maskedList(run, place, onpick) {
  const masked = run.masked(place);
  if (!masked.length) return element("p", { className: "quiet" }, "Nothing is masked any more.");
  const chips = masked.map((mention) => element("button", { type: "button", onclick: () => onpick(mention) }, run.surface(mention)));
  return element("div", {}, element("h4", {}, `Still masked (${masked.length})`), element("div", { className: "chips" }, ...chips));
}

function mentionPanel(run, place, mention, onpick) {
  const state = run.state(mention, place);
  const kicker = { masked: "Still masked: the answer it would get now", current: "Decided now", decided: "Decided", unresolved: "Left open" };
  const at = run.places.get(mention);
  const after = state === "masked" ? run.chances(mention, place) : at ? (run.steps[at - 1].open.get(mention) ?? run.chances(mention, at)) : null;
  const alone = run.local === run ? null : run.local.chances(mention, 0);
  const { resolution } = run.mentions[mention];
  const shown = state === "masked" ? best(after ?? [])[0] : resolution?.entity;
  return [
    element("p", { className: "kicker" }, kicker[state] + (state === "decided" ? ` in step ${run.steps[at - 1].number}` : "")),
    element("h3", {}, run.surface(mention)),
    state !== "masked" && !resolution ? element("p", {}, sentence(run.open(mention))) : null,
    after && candidates(after, alone && new Map(alone), shown),
    alone && after?.length > 1 ? element("p", { className: "quiet" }, TICK) : null,
    resolution && state !== "masked" ? about(run.mentions[mention].kind, resolution) : null,
    history(run, mention),
    others(run.surface(mention)),
    element("p", {}, element("button", { type: "button", onclick: () => onpick(null) }, "Back to the step")),
  ];
}

export function drawPanel(target, run, order, place, picked, onpick) {
  let parts;
  if (picked !== null) parts = mentionPanel(run, place, picked, onpick);
  else if (place === 0) {
    const intro = `Each mention is a [MASK] to the network. ${INTRO[order]}`;
    parts = [element("p", { className: "kicker" }, "Before the first step"), element("h3", {}, "All is masked"), element("p", {}, intro), maskedList(run, 0, onpick)];
  } else {
    const step = run.steps[place - 1];
    const main = step.decided.length > 1 ? several(run, step, onpick) : step.decided.flatMap((mention) => decidedNow(run, mention));
    parts = [element("p", { className: "kicker" }, `Step ${step.number} of ${run.steps.at(-1).number}`), ...main, movedList(run, place, onpick), maskedList(run, place, onpick)];
  }
  target.replaceChildren(...parts.filter(Boolean));
}

/** What is told of an answer besides its title. */
function facts({ kind, resolution }) {
  const known = resolution?.known_by && `known by ${resolution.known_by}`;
  const told = resolution ? [kind, known, resolution.wikidata].filter(Boolean).join(", ") : "";
  return told ? element("span", { className: "quiet facts" }, told) : null;
}

/** Draw a row for each mention: those decided in their order, then those that no step decides. */
export function drawDecisions(target, run, place, ongo, onpick) {
  const focused = [...target.querySelectorAll("button")].indexOf(document.activeElement);
  const row = (mention, step, index) => {
    const { resolution } = run.mentions[mention];
    const answer = element("span", {}, element("span", { className: "surface" }, run.surface(mention)), " → ",
      resolution?.entity ?? run.open(mention), facts(run.mentions[mention]));
    const onclick = () => (step ? ongo(index + 1) : onpick(mention));
    const button = element("button", { type: "button", onclick },
      element("span", { className: "step" }, step ? String(step.number) : "–"), answer,
      element("span", { className: "number" }, resolution ? percent(resolution.probability) : ""));
    const now = index + 1 === place;
    if (now) button.setAttribute("aria-current", "step");
    return element("li", { className: index + 1 > place ? "future" : now ? "now" : "" }, button);
  };
  const never = run.mentions.map((_, mention) => mention).filter((mention) => !run.places.has(mention));
  target.replaceChildren(
    ...run.steps.flatMap((step, index) => step.decided.map((mention) => row(mention, step, index))),
    ...never.map((mention) => row(mention, null, -2)), // at no place, so neither now nor in future
  );
  target.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
}
