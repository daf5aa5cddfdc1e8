// Shared parts of the browser tests. They start the real program on a free port, and drive Debian's
// Chromium with playwright-core. A page fails its test if the browser reports an error, a violation of
// the content security policy, or a request to another server.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const program = process.argv[2] ?? 'build/release/detent';
const FOLDER = process.env.DASHBOARD; // serves the page from this folder instead of the program's copy
const PATIENCE = 60_000; // ms; the longest wait for a condition

/** Returns a function that sends requests to the server at `url`. The test fails if one is refused. */
export const callTo = (url) => async (method, target, body) => {
  const response = await fetch(url + target, { method, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json();
  assert.ok(response.ok, `${method} ${target}: ${JSON.stringify(answer)}`);
  return answer;
};

/** Starts the program with a data folder. Resolves with {child, url} when the program is ready. */
async function spawnServer(folder, address, flags) {
  const child = spawn(program, ['serve', '--data', path.join(folder, 'data'), '--http', address,
    '--beanstalk', 'off', ...flags], { stdio: ['ignore', 'pipe', 'ignore'] });
  const url = await new Promise((resolve, reject) => {
    let text = '';
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${text}`)));
    child.stdout.on('data', (part) => {
      text += part;
      const ready = /ready at (http:\S+?),/.exec(text);
      if (ready) resolve(ready[1]);
    });
  });
  return { child, url };
}

/**
 * Starts `detent serve` with an empty folder. Returns {url, call(method, path, body), kill(), start(),
 * stop()}. After kill(), start() starts it again at the same address with the same data.
 */
export async function startServer(flags = []) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detent-browser-'));
  let { child, url } = await spawnServer(folder, '127.0.0.1:0', flags);
  const end = async (signal) => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  };
  const start = async () => { ({ child } = await spawnServer(folder, new URL(url).host, flags)); };
  const stop = async () => {
    await end('SIGTERM');
    fs.rmSync(folder, { recursive: true, force: true });
  };
  return { url, call: callTo(url), kill: () => end('SIGKILL'), start, stop };
}

/**
 * Starts a cluster of real processes with its own PostgreSQL (tests/cluster/stand.py). Returns {nodes,
 * tell(line), stop()}: `nodes` is {name: url}, and `tell` sends a line to stand.py.
 */
export async function startCluster() {
  const stand = fileURLToPath(new URL('../cluster/stand.py', import.meta.url));
  const child = spawn('python3', [stand, program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value } = await lines.next();
    return value === undefined ? null : JSON.parse(value).nodes;
  };
  const nodes = await next();
  assert.notEqual(nodes, null, 'the cluster does not start');
  const tell = (line) => { child.stdin.write(line + '\n'); return next(); };
  const stop = () => { child.stdin.end(); return ended; };
  return { nodes, tell, stop };
}

/** Runs `detent token new`. Its output has lines for the token file, and the token in a comment. */
export function newTokenText(name, scope) {
  const run = spawnSync(program, ['token', 'new', '--name', name, '--scope', scope], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout;
}

let browser = null;
export const startBrowser = async () => { browser ??= await chromium.launch({ executablePath: CHROMIUM }); };
export const stopBrowser = async () => { await browser?.close(); };

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const LIBRARY = { 'uplot.js': 'uPlot.iife.min.js', 'uplot.css': 'uPlot.min.css' };

/** Answers for the program with the files of FOLDER, so that an edit of the page needs no build. */
async function serveFolder(context, server) {
  const policy = (await fetch(server.url + '/')).headers.get('content-security-policy');
  await context.route(({ pathname }) => pathname === '/' || pathname.startsWith('/assets/'), (route) => {
    const name = path.basename(new URL(route.request().url()).pathname) || 'index.html';
    const file = name in LIBRARY ? path.join(FOLDER, 'node_modules/uplot/dist', LIBRARY[name]) : path.join(FOLDER, name);
    return route.fulfill({ path: file, headers: { 'content-type': TYPES[path.extname(file)], 'content-security-policy': policy } });
  });
}

/** Runs `use(page)` with a new page at `view` of the server; `options` are those of withPageAt. */
export const withPage = (server, view, use, options) => withPageAt(server.url + '/', `#/${view}`, use,
  { prepare: (context) => FOLDER && serveFolder(context, server), ...options });

/**
 * Runs `use(page)` with a new page at `target` below `base`. The page may request only addresses below
 * `base`. `expected` has patterns of errors that the browser may report. `prepare(context)` runs before
 * the page opens. All other options are those of a browser context (viewport, colorScheme …).
 */
export async function withPageAt(base, target, use, { expected = [], prepare = null, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  await prepare?.(context);
  const faults = [];
  const fault = (text) => { if (!expected.some((pattern) => pattern.test(text))) faults.push(text); };
  const page = await context.newPage();
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') fault(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => fault(`script: ${error.message}`));
  page.on('dialog', (dialog) => {
    fault(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    const address = request.url();
    if (!address.startsWith(base) && !address.startsWith('data:')) fault(`a request to ${address}`);
  });
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective}`));
  });
  try {
    await page.goto(base + target);
    await use(page);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
}

/** Waits until an element of this selector shows this text (a string or a pattern). */
export async function shows(page, selector, text) {
  await page.locator(selector).filter({ hasText: text }).first().waitFor();
}

/** Waits until `probe()` returns a true value, and returns this value. */
export async function until(what, probe) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const value = await probe();
    if (value) return value;
    assert.ok(Date.now() < end, `not within ${PATIENCE} ms: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Presses the button with this name in the dialog. */
export const press = (page, name) => page.locator('dialog[open]').getByRole('button', { name, exact: true }).click();

export async function expectNoSidewaysScroll(page, what) {
  const moved = await page.evaluate(() => {
    scrollTo(1_000, 0);
    const x = scrollX;
    scrollTo(0, 0);
    return x;
  });
  assert.equal(moved, 0, `${what} is ${moved} px wider than the screen`);
}
