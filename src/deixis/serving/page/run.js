// What is known at each place of one inference: a place counts the steps taken, from 0 (all is masked) to the last.

export class Run {
  /** `local` is the run in which each mention stands alone; its probabilities are those before any answer. */
  constructor(document, local) {
    this.document = document;
    this.mentions = document.mentions;
    this.points = Array.from(document.text); // offsets count characters, and a string of JavaScript does not
    this.steps = document.trace.map((step) => ({
      number: step.step,
      decided: step.decided,
      open: new Map(step.open.map((item) => [item.mention, item.candidates])),
    }));
    this.places = new Map(); // mention -> the place right after its decision
    this.steps.forEach((step, index) => step.decided.forEach((mention) => this.places.set(mention, index + 1)));
    this.local = local ?? this;
  }

  get last() {
    return this.steps.length;
  }

  surface(mention) {
    const { start, end } = this.mentions[mention];
    return this.points.slice(start, end).join("");
  }

  answer(mention) {
    return this.mentions[mention].resolution?.entity ?? null;
  }

  /** What is said of a mention without an answer: what it names, where that is known, and why it was left open. */
  open(mention) {
    const { kind, reason } = this.mentions[mention];
    return `${kind ? `a name (${kind}), ` : ""}left open, ${reason ?? "no answer"}`;
  }

  /** masked, current, decided or unresolved. */
  state(mention, place) {
    const decided = this.places.get(mention);
    if (decided === undefined) return "unresolved"; // no candidates: it stays [MASK] for ever
    if (decided > place) return "masked";
    if (decided === place) return "current";
    return this.answer(mention) === null ? "unresolved" : "decided";
  }

  masked(place) {
    return this.mentions.map((_, mention) => mention).filter((mention) => this.state(mention, place) === "masked");
  }

  /** The candidates of a mention with their probabilities, given what is decided at a place; null: never asked. */
  chances(mention, place) {
    const decided = this.places.get(mention);
    const until = decided === undefined ? place : Math.min(place, decided - 1);
    for (let index = until; index >= 0; index--) {
      const found = this.steps[index]?.open.get(mention);
      if (found) return found;
    }
    if (this.local !== this) return this.local.chances(mention, 0);
    return (this.mentions[mention].resolution ?? this.mentions[mention]).alternatives ?? null;
  }

  /** Every [place, candidates] at which the network was asked about a mention. */
  history(mention) {
    return this.steps.flatMap((step, index) => (step.open.has(mention) ? [[index, step.open.get(mention)]] : []));
  }

  /** What the step before a place changed for mentions still masked, most changed first. */
  moved(place) {
    if (place < 1) return [];
    const found = this.masked(place).map((mention) => {
      const before = new Map(this.chances(mention, place - 1) ?? []);
      const after = this.chances(mention, place) ?? [];
      const change = Math.max(0, ...after.map(([title, chance]) => Math.abs(chance - (before.get(title) ?? 0))));
      return { mention, before, after, change };
    });
    return found.filter((item) => item.change >= 0.005).sort((a, b) => b.change - a.change);
  }
}

export function best(chances) {
  return chances.reduce((top, pair) => (pair[1] > top[1] ? pair : top), ["", -1]);
}
