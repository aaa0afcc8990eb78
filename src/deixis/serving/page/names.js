// Who has a name in this model's knowledge, and how well is each known; the name stands behind the # of the address.

import { ask, asked, trouble } from "./server.js";
import { KNOWN_BY, bar, element, itemLink, pageLink, percent } from "./view.js";

const at = (id) => document.getElementById(id);
let asking = null;

function row([title, prior], known) {
  const links = known.links === 1 ? "1 link" : `${known.links ? known.links.toLocaleString("en") : "no"} links`;
  const name = element("b", {}, pageLink(known.url, title) ?? title);
  const number = element("span", { className: "number" }, prior === null ? "prior not known" : percent(prior));
  const facts = [known.description, KNOWN_BY[known.known_by], `Training saw ${links} to it.`].filter(Boolean).join(" ");
  return element("li", {}, element("div", { className: "name" }, name, number), bar(prior ?? 0),
    element("p", { className: "quiet" }, `${facts} `, itemLink(known.wikidata)));
}

function say(status, error = "") {
  at("status").textContent = status;
  at("error").textContent = error;
  at("error").hidden = !error;
}

async function look() {
  const name = asked().get("name") ?? "";
  asking?.abort();
  const mine = (asking = new AbortController());
  at("name").value = name;
  at("names").hidden = true;
  document.title = `deixis — who is called ${name || "so"} here?`;
  if (!name) return say("");
  say("Looking…");
  try {
    const { candidates, entities } = await ask(`/candidates?${new URLSearchParams({ surface: name })}`, { signal: mine.signal });
    at("names").replaceChildren(...candidates.map((candidate, index) => row(candidate, entities[index])));
    at("names").hidden = !candidates.length;
    const found = candidates.length === 1 ? "one candidate" : `${candidates.length} candidates`;
    const told = `${name} has ${found} here. The number is the prior: how likely the name alone means each.`;
    say(candidates.length ? told : `Nothing is called ${name} here.`);
  } catch (error) {
    if (!mine.signal.aborted) say("", trouble(error));
  }
}

document.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  history.pushState(null, "", `#${new URLSearchParams({ name: at("name").value.trim() })}`);
  look();
});
addEventListener("hashchange", look);
at("name").disabled = false; // from here on a form is answered
look();
