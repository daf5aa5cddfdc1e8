// The dashboard in a real browser: every view and every action against the real program.
//
//   node tests/browser/all.mjs build/release/detent
import { after, before } from 'node:test';

const { startBrowser, stopBrowser } = await import('./harness.mjs');
before(startBrowser);
after(stopBrowser);
const wanted = process.argv[3]; // one of the files below, for work on it
for (const name of ['source', 'text', 'now', 'live', 'queues', 'tasks', 'schedules', 'views', 'stranger', 'outage', 'cluster', 'safety', 'layout']) {
  if (!wanted || wanted === name) await import(`./${name}_test.mjs`);
}
