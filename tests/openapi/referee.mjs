// Checks the OpenAPI document of the real program with an independent validator:
// @hyperjump/json-schema, which contains the official meta-schema of OpenAPI 3.1. It validates
// - the document, and every Schema Object in it by the dialect of OpenAPI 3.1;
// - each example and default against its schema;
// - the answers of the server in a session that calls every route, against the schema of the route
//   and status. src/server/http/openapi_test.cc checks more answers with its own reader of JSON Schema.
//
//   node referee.mjs build/release/detent
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const kMetaSchema = 'https://spec.openapis.org/oas/3.1/schema-base';

async function start(program, data) {
  const server = spawn(program, ['serve', '--data', data, '--http', '127.0.0.1:0', '--beanstalk',
    'off', '--log-level', 'warning'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise((resolve, reject) => {
    let said = '';
    server.stdout.on('data', (part) => {
      said += part;
      const found = said.match(/ready at (http:\/\/127\.0\.0\.1:\d+)/);
      if (found) resolve(found[1]);
    });
    server.on('exit', () => reject(new Error('the server ended before it was ready: ' + said)));
  });
  return { server, url };
}

// ---- the document ----

async function checkDocument(validate, document) {
  const isValid = await validate(kMetaSchema);
  const verdict = isValid(document, 'BASIC');
  assert.ok(verdict.valid, JSON.stringify(verdict.errors, null, 1));
  // Check the validator itself: it must find errors in the document and in its schemas.
  const broken = {
    'no title': (copy) => delete copy.info.title,
    'a path without a slash at the start': (copy) => { copy.paths.tasks = {}; },
    'a parameter without a place': (copy) => delete copy.paths['/v1/tasks'].get.parameters[0].in,
    'an answer without a description': (copy) =>
      delete copy.paths['/v1/tasks'].get.responses['200'].description,
    'an invalid status': (copy) => { copy.paths['/v1/tasks'].get.responses['2000'] = {}; },
    'an invalid type': (copy) => { copy.components.schemas.State.type = 'text'; },
    'a limit that is not a number': (copy) =>
      { copy.paths['/v1/tasks'].get.parameters[5].schema.maximum = '1000'; },
  };
  for (const [what, breakIt] of Object.entries(broken)) {
    const copy = structuredClone(document);
    breakIt(copy);
    assert.equal(isValid(copy).valid, false, what + ' was not found');
  }
  console.log('the document is valid OpenAPI ' + document.openapi + '; ' +
    Object.keys(broken).length + ' broken copies are not');
}

/// Calls `visit(node, pointer)` for all objects in the document.
function walk(node, pointer, visit) {
  if (node === null || typeof node !== 'object') return;
  if (!Array.isArray(node)) visit(node, pointer);
  for (const [name, inner] of Object.entries(node)) {
    walk(inner, pointer + '/' + name.replaceAll('~', '~0').replaceAll('/', '~1'), visit);
  }
}

async function checkExamples(check, document) {
  const found = [];
  walk(document, '', (node, pointer) => {
    // Only the members of a Schema Object count. A property can also have such a name; its value is
    // then an object.
    const values = Array.isArray(node.examples) ? [...node.examples] : [];
    if ('default' in node && (node.default === null || typeof node.default !== 'object')) {
      values.push(node.default);
    }
    for (const value of values) found.push([pointer, value]);
    assert.ok(!('example' in node && typeof node.example !== 'object'), pointer + ': `examples`');
  });
  assert.ok(found.length > 0);
  for (const [pointer, value] of found) await check(pointer, value);
  console.log(found.length + ' examples and defaults are valid');
}

// ---- the answers ----

class Session {
  constructor(url, document, check) {
    this.url = url;
    this.document = document;
    this.check = check;
    this.seen = new Set();
  }
  /// Sends a request. Checks the request and its answer against the document. Returns the body.
  async call(method, route, status, { target = route, body, text } = {}) {
    const operation = this.document.paths[route][method.toLowerCase()];
    const where = `/paths/${route.replaceAll('/', '~1')}/${method.toLowerCase()}`;
    if (body !== undefined && status < 300) {
      await this.check(`${where}/requestBody/content/application~1json/schema`, body);
    }
    const answer = await fetch(this.url + target, {
      method,
      body: text ?? (body === undefined ? undefined : JSON.stringify(body)),
      headers: text === undefined ? {} : { 'content-type': 'application/x-ndjson' },
    });
    const said = await answer.text();
    assert.equal(answer.status, status, `${method} ${target}: ${said}`);
    let response = operation.responses[status];
    assert.ok(response, `${method} ${route} says nothing of ${status}`);
    let pointer = `${where}/responses/${status}`;
    if (response.$ref) {
      pointer = response.$ref.slice(1);
      response = this.document.components.responses[pointer.split('/').at(-1)];
    }
    if (status < 300) this.seen.add(`${method} ${route}`);
    const type = answer.headers.get('content-type').split(';')[0];
    assert.ok(response.content[type], `${method} ${route}: ${type}`);
    if (!type.endsWith('json') || type.endsWith('ndjson')) return said;
    const value = JSON.parse(said);
    const escaped = type.replaceAll('/', '~1');
    await this.check(`${pointer}/content/${escaped}/schema`, value);
    return value;
  }

  async tasks() {
    const one = await this.call('POST', '/v1/tasks', 201,
      { body: { queue: 'q', payload: { a: 1 }, delay: '1h', key: 'k', headers: { a: 'b' } } });
    await this.call('POST', '/v1/tasks', 200,
      { body: { queue: 'q', payload: { a: 1 }, delay: '1h', key: 'k', headers: { a: 'b' } } });
    await this.call('POST', '/v1/tasks', 409, { body: { queue: 'q', key: 'k' } });
    await this.call('POST', '/v1/tasks', 400, { body: { queue: 'q', surprise: 1 } });
    await this.call('POST', '/v1/tasks/batch', 200,
      { body: [{ queue: 'q', payload_base64: '/w==' }, { queue: 'q' }] });
    const target = `/v1/tasks/${one.id}`;
    await this.call('GET', '/v1/tasks', 200, { target: '/v1/tasks?queue=q&limit=1' });
    await this.call('GET', '/v1/tasks/{id}', 200, { target });
    await this.call('PATCH', '/v1/tasks/{id}', 200, { target, body: { priority: 1 } });
    await this.call('POST', '/v1/tasks/{id}/run', 200, { target: target + '/run' });
    const keyed = { target: '/v1/queues/q/keys/k' };
    await this.call('GET', '/v1/queues/{queue}/keys/{key}', 200, keyed);
    await this.call('PATCH', '/v1/queues/{queue}/keys/{key}', 200,
      { ...keyed, body: { delay: '1h' } });
    await this.call('DELETE', '/v1/queues/{queue}/keys/{key}', 200, keyed);
    const other = await this.call('POST', '/v1/tasks', 201, { body: { queue: 'q', delay: '1h' } });
    await this.call('DELETE', '/v1/tasks/{id}', 200, { target: `/v1/tasks/${other.id}` });
    await this.call('DELETE', '/v1/tasks/{id}', 404, { target: `/v1/tasks/${other.id}` });
    await this.call('POST', '/v1/tasks/move', 200, { body: { ids: ['1'], delay: '1s' } });
    await this.call('POST', '/v1/tasks/cancel', 200, { body: { queue: 'q', keys: ['none'] } });
  }
  async leases() {
    for (const [verb, rest] of [['extend', { by: '10s' }], ['release', {}],
      ['fail', { error: 'no' }], ['complete', {}]]) {
      await this.call('POST', '/v1/tasks', 201, { body: { queue: 'jobs', payload: 'x' } });
      const { tasks } = await this.call('POST', '/v1/queues/{queue}/lease', 200,
        { target: '/v1/queues/jobs/lease', body: { max: 1, wait: '1s', worker: 'w' } });
      assert.equal(tasks.length, 1);
      await this.call('POST', `/v1/leases/${verb}`, 200,
        { body: { leases: [tasks[0].lease, 'stale'], ...rest } });
    }
  }
  async queues() {
    await this.call('GET', '/v1/queues', 200);
    const route = '/v1/queues/{queue}';
    await this.call('PATCH', route, 200,
      { target: '/v1/queues/q', body: { max_tasks: 100, visibility_timeout: '1m' } });
    await this.call('GET', route, 200, { target: '/v1/queues/q' });
    await this.call('GET', route, 404, { target: '/v1/queues/never' });
    await this.call('DELETE', route, 409, { target: '/v1/queues/q' });
    for (const verb of ['pause', 'resume', 'redrive', 'purge']) {
      await this.call('POST', `${route}/${verb}`, 200, { target: `/v1/queues/q/${verb}` });
    }
    await this.call('DELETE', route, 200, { target: '/v1/queues/q' });
  }
  async schedules() {
    const route = '/v1/schedules/{name}';
    const target = '/v1/schedules/s';
    await this.call('PUT', route, 201,
      { target, body: { cron: '0 9 1 * *', time_zone: 'Asia/Shanghai', queue: 'q' } });
    await this.call('GET', '/v1/schedules', 200);
    await this.call('GET', route, 200, { target });
    await this.call('GET', `${route}/next`, 200, { target: target + '/next?count=3' });
    await this.call('POST', '/v1/occurrences', 200, { body: { every: '1h', queue: 'q' } });
    await this.call('POST', `${route}/backfill`, 200, { target: target + '/backfill',
      body: { from: '2026-01-01T00:00:00Z', to: '2026-03-01T00:00:00Z' } });
    for (const [verb, status] of [['pause', 200], ['resume', 200], ['trigger', 201]]) {
      await this.call('POST', `${route}/${verb}`, status, { target: `${target}/${verb}` });
    }
    await this.call('DELETE', route, 200, { target });
  }
  async theRest() {
    for (const route of ['/v1/stats', '/v1/stats/history', '/v1/forecast', '/v1/wheel',
      '/v1/cluster', '/healthz', '/readyz', '/metrics', '/openapi.json', '/']) {
      await this.call('GET', route, 200);
    }
    await this.call('GET', '/assets/{name}', 200, { target: '/assets/app.js' });
    const dump = await this.call('GET', '/v1/dump', 200);
    await this.call('POST', '/v1/restore', 200, { text: dump });
    await this.call('POST', '/v1/backup', 201);
    await this.call('POST', '/v1/backup/end', 200);
    await this.call('GET', '/v1/forecast', 400, { target: '/v1/forecast?bins=0' });
    this.seen.add('GET /v1/events');  // has no end; src/server/http/openapi_test.cc reads its events
  }
}

async function checkAnswers(url, document, check) {
  const session = new Session(url, document, check);
  await session.tasks();
  await session.leases();
  await session.queues();
  await session.schedules();
  await session.theRest();
  const routes = Object.entries(document.paths).flatMap(([route, item]) =>
    Object.keys(item).filter((word) => word !== 'parameters')
      .map((word) => `${word.toUpperCase()} ${route}`));
  assert.deepEqual([...session.seen].sort(), routes.sort(), 'each route was called');
  console.log('the answers of ' + routes.length + ' routes are valid');
}

// ---- the program ----

async function main(program) {
  const referee = await import('@hyperjump/json-schema/openapi-3-1');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detent-openapi-'));
  const { server, url } = await start(program, path.join(folder, 'data'));
  try {
    const text = await (await fetch(url + '/openapi.json')).text();
    const document = JSON.parse(text);
    await checkDocument(referee.validate, document);
    const file = path.join(folder, 'detent.openapi.json');
    fs.writeFileSync(file, text);
    const at = pathToFileURL(file).href;
    const check = async (pointer, value) => {
      const verdict = await referee.validate(`${at}#${encodeURI(pointer)}`, value, 'BASIC');
      assert.ok(verdict.valid, `${pointer}: ${JSON.stringify(value)}: ` +
        JSON.stringify(verdict.errors));
    };
    await checkExamples(check, document);
    await checkAnswers(url, document, check);
    return 0;
  } finally {
    server.removeAllListeners('exit');
    server.kill('SIGKILL');
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

setTimeout(() => {
  console.error('no answer for a minute');
  process.exit(1);
}, 60_000).unref();
main(process.argv[2]).then(
  (code) => process.exit(code),
  (error) => {
    console.error(error);
    process.exit(1);
  });
