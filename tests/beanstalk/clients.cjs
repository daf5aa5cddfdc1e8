// Runs four published beanstalk clients against the real program: jackd, fivebeans, beanstalkd and
// node-beanstalk. All run the same scenario, each through a small adapter: put with and without a
// delay, reserve, bury, kick, delete and stats.
//
//   node clients.cjs build/release/detent
//   node clients.cjs --port 11300          # against the server on this port, to check the test
'use strict';
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { createRequire } = require('node:module');

const load = createRequire(__filename);

// ---- adapters: the same verbs for each client, answers as plain values ----

async function jackd(port) {
  const JackdClient = load('jackd');
  const yaml = load('js-yaml');
  const client = new JackdClient();
  await client.connect({ host: '127.0.0.1', port });
  const job = ({ id, payload }) => ({ id: String(id), body: String(payload) });
  return {
    use: (tube) => client.use(tube),
    watch: (tube) => client.watch(tube),
    put: (body, delay) => client.put(body, { delay, ttr: 60, priority: 7 }),
    reserve: async () => job(await client.reserve()),
    bury: (id) => client.bury(id, 7),
    peekBuried: async () => job(await client.peekBuried()),
    kick: async (id) => assert.equal(Number(await client.kick(10)), 1),
    destroy: (id) => client.delete(id),
    stats: async () => yaml.load(String(await client.stats())),
    statsJob: async (id) => yaml.load(String(await client.statsJob(id))),
    statsTube: async (tube) => yaml.load(String(await client.statsTube(tube))),
    close: () => client.close(),
  };
}

async function fivebeans(port) {
  const { client: Client } = load('fivebeans');
  const client = new Client('127.0.0.1', port);
  await new Promise((resolve, reject) => {
    client.on('connect', resolve).on('error', reject).connect();
  });
  const call = (verb, ...args) =>
    new Promise((resolve, reject) => {
      client[verb](...args, (error, ...values) => (error ? reject(error) : resolve(values)));
    });
  const job = ([id, body]) => ({ id: String(id), body: String(body) });
  return {
    use: (tube) => call('use', tube),
    watch: (tube) => call('watch', tube),
    put: async (body, delay) => (await call('put', 7, delay, 60, body))[0],
    reserve: async () => job(await call('reserve')),
    bury: (id) => call('bury', id, 7),
    peekBuried: async () => job(await call('peek_buried')),
    kick: async (id) => assert.equal(Number((await call('kick', 10))[0]), 1),
    destroy: (id) => call('destroy', id),
    stats: async () => (await call('stats'))[0],
    statsJob: async (id) => (await call('stats_job', id))[0],
    statsTube: async (tube) => (await call('stats_tube', tube))[0],
    close: async () => client.end(),
  };
}

async function beanstalkd(port) {
  const { default: Client } = load('beanstalkd');
  const client = new Client('127.0.0.1', port);
  await client.connect();
  const job = ([id, body]) => ({ id: String(id), body: String(body) });
  // This client converts the names of fields to camelCase.
  const dashed = (stats) =>
    Object.fromEntries(
      Object.entries(stats).map(([key, value]) => [
        key.replace(/[A-Z]/g, (letter) => '-' + letter.toLowerCase()), value]));
  return {
    use: (tube) => client.use(tube),
    watch: (tube) => client.watch(tube),
    put: (body, delay) => client.put(7, delay, 60, body),
    reserve: async () => job(await client.reserve()),
    bury: (id) => client.bury(id, 7),
    peekBuried: async () => job(await client.peekBuried()),
    kick: (id) => client.kickJob(id), // this client has no `kick`
    destroy: (id) => client.delete(id),
    stats: async () => dashed(await client.stats()),
    statsJob: async (id) => dashed(await client.statsJob(id)),
    statsTube: async (tube) => dashed(await client.statsTube(tube)),
    close: async () => client.quit(),
  };
}

async function nodeBeanstalk(port) {
  const { Client } = load('node-beanstalk');
  const client = new Client({ host: '127.0.0.1', port });
  await client.connect();
  const job = ({ id, payload }) => ({ id: String(id), body: String(payload) });
  return {
    use: (tube) => client.use(tube),
    watch: (tube) => client.watch(tube),
    put: async (body, delay) => (await client.put(body, 60, 7, delay)).id,
    reserve: async () => job(await client.reserve()),
    bury: (id) => client.bury(Number(id), 7),
    peekBuried: async () => job(await client.peekBuried()),
    kick: async (id) => assert.equal(await client.kick(10), 1),
    destroy: (id) => client.delete(Number(id)),
    stats: () => client.stats(),
    statsJob: (id) => client.statsJob(Number(id)),
    statsTube: (tube) => client.statsTube(tube),
    close: async () => client.disconnect(),
  };
}

const kClients = { jackd, fivebeans, beanstalkd, 'node-beanstalk': nodeBeanstalk };

// ---- the scenario ----

async function scenario(client, name) {
  const tube = 'npm-' + name;
  await client.use(tube);
  await client.watch(tube);
  const later = String(await client.put('later', 1));
  const now = String(await client.put('now', 0));

  assert.deepEqual(await client.reserve(), { id: now, body: 'now' });
  const counts = await client.statsTube(tube);
  assert.equal(counts.name, tube);
  assert.equal(counts['current-jobs-reserved'], 1);
  assert.equal(counts['current-jobs-ready'] + counts['current-jobs-delayed'], 1);
  assert.equal(counts['total-jobs'], 2);

  await client.bury(now);
  assert.deepEqual(await client.peekBuried(), { id: now, body: 'now' });
  await client.kick(now);
  // The delayed job may be due already, so the two jobs come in any order.
  const got = [await client.reserve(), await client.reserve()];
  assert.deepEqual(got.map((job) => job.body).sort(), ['later', 'now']);
  const story = await client.statsJob(now);
  assert.deepEqual(
    [story.state, story.pri, story.ttr, story.reserves, story.buries, story.kicks],
    ['reserved', 7, 60, 2, 1, 1]);
  await client.destroy(now);
  await client.destroy(later);

  const stats = await client.stats();
  assert.equal(stats['max-job-size'], 65535);
  assert.equal(stats['current-jobs-reserved'], 0);
  assert.equal(typeof stats.version, 'string');
  await client.close();
}

// ---- the program ----

function start(program, data) {
  const server = spawn(program, ['serve', '--data', data, '--http', '127.0.0.1:0',
    '--beanstalk', '127.0.0.1:0', '--log-level', 'warning'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = new Promise((resolve, reject) => {
    let said = '';
    server.stdout.on('data', (part) => {
      said += part;
      const found = said.match(/beanstalk at 127\.0\.0\.1:(\d+),/);
      if (found) resolve(Number(found[1]));
    });
    server.on('exit', () => reject(new Error('the server has gone: ' + said)));
  });
  return { server, port };
}

async function main() {
  if (process.argv[2] === '--port') return runAll(Number(process.argv[3]));
  const data = fs.mkdtempSync(path.join(os.tmpdir(), 'detent-clients-'));
  const { server, port } = start(process.argv[2], path.join(data, 'data'));
  try {
    return await runAll(await port);
  } finally {
    server.removeAllListeners('exit');
    server.kill('SIGKILL');
    fs.rmSync(data, { recursive: true, force: true });
  }
}

async function runAll(port) {
  for (const [name, connect] of Object.entries(kClients)) {
    await scenario(await connect(port), name);
    console.log(name + ' ' + load(name + '/package.json').version + ': ok');
  }
  return 0;
}

const kPatience = 60_000;
setTimeout(() => {
  console.error('no answer for a minute');
  process.exit(1);
}, kPatience).unref();
main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(error);
    process.exit(1);
  });
