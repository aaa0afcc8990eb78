// The reference: the server's own OpenAPI document as a page, without a script from elsewhere.

import { element } from "./view.js";

/** JSON with a line a mention. */
function compact(value) {
  return JSON.stringify(value, null, 1).replace(/\n {3,}/g, " ").replace(/\n {2}([}\]])/g, " $1");
}

/** Prose with `code`. */
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

function example(operation) {
  const [media, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  if (!body?.example) return null;
  const text = typeof body.example === "string" ? body.example : compact(body.example);
  return element("div", {}, element("p", { className: "quiet" }, `Body, ${media}`), element("pre", { tabIndex: 0 }, text));
}

/** The values that a field takes, in words. */
function values(schema) {
  if (schema.enum) return schema.enum.join(", ");
  if ("const" in schema) return String(schema.const);
  return schema.anyOf ? schema.anyOf.map(values).join(" or ") : (schema.type ?? "");
}

function settings(operation, schemas) {
  const shapes = operation.requestBody?.content?.["application/json"]?.schema?.oneOf;
  if (!shapes) return null;
  const rows = Object.entries(schemas[shapes[0].$ref.split("/").at(-1)].properties).flatMap(([name, schema]) => {
    const text = [schema.description, values(schema), "default" in schema ? `default ${schema.default}` : ""].filter(Boolean).join("; ");
    return [element("dt", {}, name), element("dd", {}, text)];
  });
  return element("dl", {}, ...rows);
}

function answers(operation) {
  const rows = Object.entries(operation.responses ?? {}).sort();
  return element("dl", {}, ...rows.flatMap(([status, { description }]) => [element("dt", {}, status), element("dd", {}, description ?? "")]));
}

const described = await (await fetch("/openapi.json")).json();
for (const [path, methods] of Object.entries(described.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const parameters = (operation.parameters ?? []).map((parameter) => parameter.name).join("=…&");
    document.getElementById("endpoints").append(element("section", { className: "endpoint" },
      element("h3", {}, `${method.toUpperCase()} ${path}${parameters ? `?${parameters}=…` : ""}`),
      element("p", {}, ...prose(operation.description ?? "")), example(operation), settings(operation, described.components.schemas), answers(operation)));
  }
}
