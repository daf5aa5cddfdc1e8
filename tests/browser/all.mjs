// The dashboard in a real browser: every view and every action against the real program.
//
//   node tests/browser/all.mjs build/release/detent
//
// Exits with 77 (skipped) when Chromium or the packages of this folder's lock file are not there.
import fs from 'node:fs';
import { after, before } from 'node:test';

const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';
const packages = new URL('node_modules/playwright-core/package.json', import.meta.url);
if (!fs.existsSync(packages) || !fs.existsSync(chromium)) {
  console.error('Chromium or playwright-core is missing; `tools/setup test` installs them');
  process.exit(77);
}
const { startBrowser, stopBrowser } = await import('./harness.mjs');
before(startBrowser);
after(stopBrowser);
const wanted = process.argv[3]; // one of the files below, for work on it
for (const name of ['source', 'text', 'now', 'live', 'queues', 'tasks', 'schedules', 'views', 'stranger', 'outage', 'cluster', 'safety', 'layout']) {
  if (!wanted || wanted === name) await import(`./${name}_test.mjs`);
}
