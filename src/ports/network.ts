/** The network as a port: nothing else reaches for `fetch`. */

export type Fetch = typeof fetch;

export const systemFetch: Fetch = (input, init) => fetch(input, init);
