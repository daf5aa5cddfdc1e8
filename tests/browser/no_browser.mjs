// Stand-ins for the parts of a browser that the dashboard's modules use when they are loaded, so that
// text_test.mjs can load them in Node.
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.localStorage = { getItem: () => null };
globalThis.document = { documentElement: { dataset: {} }, dispatchEvent() {}, createElement: () => ({}) };
