// How the pages ask the server, and what stands behind the # of their addresses: that part is never sent to it.

/** The answer of an endpoint: of a POST where there is a body, else of a GET. */
export async function ask(path, { body, signal } = {}) {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, { signal, ...(body ? post : {}) });
  const record = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(record.error ?? `the server answered ${answer.status}`);
  return record;
}

export function trouble(error) {
  return error instanceof TypeError ? "The server cannot be reached." : `The server answered: ${error.message}`;
}

export const asked = () => new URLSearchParams(location.hash.slice(1));
export const nameAddress = (name) => `/names#${new URLSearchParams({ name })}`;
