// What the dashboard's modules ask of a browser as they are loaded, so that text_test.mjs can load
// them in Node.
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.localStorage = { getItem: () => null };
globalThis.document = { documentElement: { dataset: {} }, dispatchEvent() {}, createElement: () => ({}) };
