// Tests webhooks of the real program with real HTTP servers as receivers. The published Node
// library of Standard Webhooks verifies the signatures. The tests check the requests and their
// order, but not their times.
//
//   node deliveries.cjs build/release/detent
'use strict';
const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

const kPatience = 120_000;
const { Webhook } = require('standardwebhooks');

// ---- the program ----

class Server {
  constructor(program, folder, flags) {
    this.program = program;
    this.data = path.join(folder, 'data');
    this.flags = flags;
    this.address = '127.0.0.1:0';
  }
  /// The first start takes a free port. Later starts use the same port.
  async start() {
    this.process = spawn(this.program,
      ['serve', '--data', this.data, '--http', this.address, '--beanstalk', 'off',
        '--log-level', 'warning', ...this.flags],
      { stdio: ['ignore', 'pipe', 'inherit'] });
    this.address = await new Promise((resolve, reject) => {
      let said = '';
      this.process.stdout.on('data', (part) => {
        said += part;
        const found = said.match(/ready at http:\/\/(127\.0\.0\.1:\d+)/);
        if (found) resolve(found[1]);
      });
      this.process.once('exit', () => reject(new Error('the server has gone: ' + said)));
    });
  }
  async end(signal) {
    const gone = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill(signal);
    return gone;
  }
  reload() {
    this.process.kill('SIGHUP');
  }

  async ask(method, target, body) {
    const answer = await fetch(`http://${this.address}${target}`,
      { method, body: body && JSON.stringify(body) });
    const text = await answer.text();
    return { status: answer.status, text, json: text.startsWith('{') ? JSON.parse(text) : undefined };
  }
  /// Schedules a task and returns its id.
  async schedule(task) {
    const { status, json, text } = await this.ask('POST', '/v1/tasks', { queue: 'q', ...task });
    assert.equal(status, 201, text);
    return json.id;
  }
  /// Repeats the request until the answer meets the condition.
  async until(target, is) {
    for (;;) {
      const answer = await this.ask('GET', target);
      if (is(answer)) return answer;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  ownKey() {
    return fs.readFileSync(path.join(this.data, 'webhook.key'), 'utf8').trim();
  }
}

// ---- the receiver ----

/// An HTTP server that keeps each request until the test answers it.
class Receiver {
  constructor() {
    this.arrived = [];
    this.waiting = [];
    this.server = http.createServer((request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        const held = { request, response, headers: request.headers, body: Buffer.concat(parts) };
        const next = this.waiting.shift();
        if (next) next(held);
        else this.arrived.push(held);
      });
    });
  }
  async listen() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}/hook`;
    return this;
  }
  next() {
    if (this.arrived.length > 0) return this.arrived.shift();
    return new Promise((resolve) => this.waiting.push(resolve));
  }
  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

function answer(held, status, headers = {}, body = '') {
  held.response.writeHead(status, headers).end(body);
}

/// Throws an error if the library rejects the signature.
function verify(held, key, body = held.body) {
  new Webhook(key).verify(body.toString('latin1'), held.headers, { jsonParse: false });
}
const signed = (held) => held.headers['webhook-signature'].split(' ').length;

// ---- the tests ----

async function isVerifiedByTheLibrary(server, receiver) {
  const key = server.ownKey();
  const payloads = [{ a: 1 }, [], '', 'a.b', 0, null, { text: 'a\n"b"' }];
  for (const payload of payloads) {
    const id = await server.schedule({
      payload, webhook: receiver.url, headers: { 'X-Own': 'yes', authorization: 'Bearer t' } });
    const held = await receiver.next();
    verify(held, key);
    assert.deepEqual(JSON.parse(held.body), payload);
    assert.equal(held.request.method, 'POST');
    assert.equal(held.headers['webhook-id'], `task_${id}`);
    assert.equal(held.headers['content-type'], 'application/json');
    assert.equal(held.headers['detent-queue'], 'q');
    assert.equal(held.headers['detent-attempt'], '1');
    assert.ok(!Number.isNaN(Date.parse(held.headers['detent-due-at'])));
    assert.equal(held.headers['x-own'], 'yes');
    assert.equal(held.headers.authorization, 'Bearer t');
    answer(held, 204);
    await server.until(`/v1/tasks/${id}`, ({ status }) => status === 404);
  }
  await server.schedule({
    payload_base64: Buffer.from('\0\x01plain').toString('base64'), webhook: receiver.url });
  const bytes = await receiver.next();
  assert.equal(bytes.body.toString('latin1'), '\0\x01plain');
  assert.equal(bytes.headers['content-type'], 'application/octet-stream');
  verify(bytes, key);
  answer(bytes, 200);
}

/// Checks the library itself: it must reject a changed body and another key.
async function isRefusedWhenTamperedWith(server, receiver) {
  const key = server.ownKey();
  await server.schedule({ payload: { amount: 10 }, webhook: receiver.url });
  const held = await receiver.next();
  verify(held, key);
  assert.throws(() => verify(held, key, Buffer.from('{"amount":99}')), /No matching signature/);
  const other = `whsec_${crypto.randomBytes(32).toString('base64')}`;
  assert.throws(() => verify(held, other), /No matching signature/);
  for (const header of ['webhook-id', 'webhook-timestamp']) {
    const forged = { ...held.headers, [header]: String(Number(held.headers['webhook-timestamp']) + 1) };
    assert.throws(() => verify({ headers: forged, body: held.body }, key), /No matching signature/);
  }
  answer(held, 200);
}

async function comesAgainUntilItIsTaken(server, receiver) {
  const id = await server.schedule(
    { payload: 1, webhook: receiver.url, backoff: { initial: '1ms', max: '1ms' } });
  const first = await receiver.next();
  answer(first, 500, {}, 'out of \u001b order');
  const second = await receiver.next();
  const task = (await server.ask('GET', `/v1/tasks/${id}`)).json;
  assert.equal(task.history.at(-1).error, 'HTTP 500: out of ? order');
  assert.equal(second.headers['webhook-id'], first.headers['webhook-id']);
  assert.equal(second.headers['detent-attempt'], '2');
  verify(second, server.ownKey());
  second.request.socket.destroy();
  const third = await receiver.next();
  assert.equal(third.headers['detent-attempt'], '3');
  answer(third, 302, { location: receiver.url });
  const fourth = await receiver.next();
  assert.equal(fourth.headers['detent-attempt'], '4');
  answer(fourth, 202);
  await server.until(`/v1/tasks/${id}`, ({ status }) => status === 404);
}

async function waitsAsLongAsItIsAskedTo(server, receiver) {
  const id = await server.schedule({ payload: 1, webhook: receiver.url });
  answer(await receiver.next(), 503, { 'retry-after': '3600' });
  const { json } = await server.until(`/v1/tasks/${id}`, ({ json }) => json.state === 'scheduled');
  const wait = Date.parse(json.due_at) - Date.parse(json.history.at(-1).ended_at);
  assert.ok(wait >= 3_600_000 && wait < 3_601_000, `${wait} ms`);
}

async function stopsWhenItIsGone(server, receiver) {
  const id = await server.schedule({ payload: 1, webhook: receiver.url });
  answer(await receiver.next(), 410);
  const { json } = await server.until(`/v1/tasks/${id}`, ({ json }) => json.state === 'dead');
  assert.match(json.history.at(-1).error, /^410 Gone/);
}

/// One receiver does not answer. The requests to the other receiver must still arrive.
async function isNotHeldUpByOthers(server, receiver) {
  const slow = await new Receiver().listen();
  for (let i = 0; i < 100; ++i) {
    await server.schedule({ queue: 'slow', payload: i, webhook: slow.url });
  }
  const held = [await slow.next()];
  for (let i = 0; i < 100; ++i) {
    // Half of the tasks are in the queue of the slow receiver, because the limits are per host.
    const queue = i % 2 === 0 ? 'well' : 'slow';
    await server.schedule({ queue, payload: i, webhook: receiver.url });
    const one = await receiver.next();
    assert.equal(one.body.toString(), String(i));
    answer(one, 200);
  }
  held.push(...slow.arrived);
  assert.ok(held.length <= 16, `${held.length} at once`);
  await server.until('/metrics', ({ text }) => /^detent_webhook_calls [1-8]$/m.test(text));
  slow.close();
}

async function isSignedByOldAndNewKeys(server, receiver, keysFile) {
  const [old, fresh] = [1, 2].map(() => `whsec_${crypto.randomBytes(32).toString('base64')}`);
  const received = async (keys) => {
    fs.writeFileSync(keysFile, keys.join('\n') + '\n');
    server.reload();
    // The reload happens some time after the signal.
    for (;;) {
      await server.schedule({ payload: 'rotate', webhook: receiver.url });
      const held = await receiver.next();
      answer(held, 200);
      if (signed(held) === keys.length) return held;
    }
  };
  await received([old, old, old]);
  const both = await received([old, fresh]);
  verify(both, old);
  verify(both, fresh);
  const last = await received([fresh]);
  verify(last, fresh);
  assert.throws(() => verify(last, old), /No matching signature/);
}

async function isDeliveredAgainAfterAKill(server, receiver) {
  const id = await server.schedule({ payload: 'kept', webhook: receiver.url });
  const before = await receiver.next();
  await server.end('SIGKILL');
  await server.start();
  const after = await receiver.next();
  assert.equal(after.headers['webhook-id'], before.headers['webhook-id']);
  assert.equal(after.body.toString(), '"kept"');
  answer(after, 200);
  await server.until(`/v1/tasks/${id}`, ({ status }) => status === 404);
}

/// A stop waits for the call in progress, so its task is not delivered twice.
async function endsWhatIsUnderWayAtAStop(server, receiver) {
  await server.schedule({ payload: 'last', webhook: receiver.url });
  const held = await receiver.next();
  const stopped = server.end('SIGTERM');
  answer(held, 200);
  assert.equal(await stopped, 0);
  await server.start();
  await server.schedule({ payload: 'next', webhook: receiver.url });
  const next = await receiver.next();
  assert.equal(next.body.toString(), '"next"');
  answer(next, 200);
}

async function reachesNothingInsideWithoutLeave(server, receiver) {
  const port = new URL(receiver.url).port;
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433', '127.1']) {
    const id = await server.schedule({ payload: 1, webhook: `http://${host}:${port}/` });
    const { json } = await server.until(`/v1/tasks/${id}`, ({ json }) => json.state === 'dead');
    assert.match(json.history.at(-1).error, /^the webhook may not be called: /, host);
  }
  assert.equal(receiver.arrived.length, 0);
}

// ---- run all tests ----

async function withServer(program, flags, scenarios) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detent-webhooks-'));
  const keysFile = path.join(folder, 'keys');
  fs.writeFileSync(keysFile, `whsec_${crypto.randomBytes(32).toString('base64')}\n`);
  const server = new Server(program, folder,
    flags.map((flag) => (flag === 'KEYS' ? keysFile : flag)));
  try {
    await server.start();
    for (const scenario of scenarios) {
      const receiver = await new Receiver().listen();
      await scenario(server, receiver, keysFile);
      assert.equal(receiver.arrived.length, 0, 'more arrived than was to come');
      receiver.close();
      console.log(scenario.name + ': ok');
    }
  } finally {
    server.process.removeAllListeners('exit');
    server.process.kill('SIGKILL');
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function main() {
  const program = process.argv[2];
  await withServer(program, ['--webhook-allow', '127.0.0.0/8'],
    [isVerifiedByTheLibrary, isRefusedWhenTamperedWith, comesAgainUntilItIsTaken,
      waitsAsLongAsItIsAskedTo, stopsWhenItIsGone, isNotHeldUpByOthers,
      isDeliveredAgainAfterAKill, endsWhatIsUnderWayAtAStop]);
  await withServer(program, ['--webhook-allow', '127.0.0.0/8', '--webhook-keys', 'KEYS'],
    [isSignedByOldAndNewKeys]);
  await withServer(program, [], [reachesNothingInsideWithoutLeave]);
  return 0;
}

setTimeout(() => {
  console.error('no answer for two minutes');
  process.exit(1);
}, kPatience).unref();
main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(error);
    process.exit(1);
  });
