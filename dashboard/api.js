// The only connection from the page to the server: its public HTTP interface, which
// docs/reference/http.md describes. If the server requires a token, the viewer is asked for it, and
// the token is kept for this tab only. Errors are Problems (RFC 9457).
import { askForToken } from './dialog.js';

const TOKEN = 'detent.token';
let asking = null; // one question at a time, even if many calls wait for the answer

export const access = new EventTarget();
/** The actions that the server has refused for this token: kinds 'read' and 'change'. */
const refused = new Set();
let outage = null; // why all changes are disabled now, with any token
/** The reason why actions are disabled; null when they are enabled. */
export const whyNoChange = () => outage ?? (refused.has('change') ? 'Your token allows you to look, not to change anything' : null);
export function setOutage(reason) {
  if (reason === outage) return;
  outage = reason;
  access.dispatchEvent(new Event('change'));
}

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? body?.title ?? `the server answered ${status}`);
    this.status = status;
    this.field = body?.field ?? null;
  }
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;
export function forgetToken() {
  sessionStorage.removeItem(TOKEN);
  refused.clear();
  access.dispatchEvent(new Event('change'));
}

async function newToken(used) {
  if (sessionStorage.getItem(TOKEN) !== used) return; // another call has got a token already
  asking ??= askForToken(used !== null).finally(() => { asking = null; });
  sessionStorage.setItem(TOKEN, await asking);
  refused.clear();
  access.dispatchEvent(new Event('change'));
}

/**
 * Resolves with the first Response that is not 401. Sends `body` as JSON, or `text`, which is JSON
 * already. With `patience`, it fails if the server does not answer within so many ms. Rejects as
 * fetch() does.
 */
async function send(method, path, { body, text, headers = {}, signal, patience } = {}) {
  const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const sent = { ...headers };
    if (token !== null) sent.authorization = 'Bearer ' + token;
    if (content !== undefined) sent['content-type'] = 'application/json';
    const response = await fetch(path, { method, headers: sent, cache: 'no-store', body: content,
      signal: patience === undefined ? signal : AbortSignal.timeout(patience) });
    if (response.status !== 401) return response;
    await response.body?.cancel();
    await newToken(token);
  }
}

async function problemOf(method, response) {
  const body = await response.json().catch(() => null);
  if (response.status === 403) {
    const kind = method === 'GET' ? 'read' : 'change';
    if (!refused.has(kind)) {
      refused.add(kind);
      access.dispatchEvent(new Event('change'));
    }
    return new Problem(403, { detail: kind === 'read'
      ? 'Your token does not allow you to see this.'
      : 'Your token allows you to look, not to change anything.' });
  }
  return new Problem(response.status, body);
}

/** The JSON of the answer; with `whole`, also its ETag and its unchanged text: {value, etag, text}. */
export async function call(method, path, { whole = false, ...options } = {}) {
  const response = await send(method, path, options);
  if (!response.ok) throw await problemOf(method, response);
  const text = await response.text();
  const value = JSON.parse(text);
  return whole ? { value, etag: response.headers.get('etag'), text } : value;
}

export const get = (path, signal) => call('GET', path, { signal });

/** "/v1/tasks?a=b" with the parameters that have a value. The server reads "+" as a plus sign. */
export function withQuery(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== '' && value != null);
  const query = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  return query === '' ? path : `${path}?${query}`;
}

/**
 * Calls `on(name, data)` for each server-sent event of `path`, until the stream ends or `signal`
 * aborts. Uses fetch(), because an EventSource cannot send a token.
 */
export async function stream(path, signal, on) {
  const response = await send('GET', path, { signal, headers: { accept: 'text/event-stream' } });
  if (!response.ok) throw await problemOf('GET', response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) dispatch(block, on);
  }
}

function dispatch(block, on) {
  let name = 'message';
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith('event:')) name = line.slice(6).trim();
    if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
  if (data.length > 0) on(name, JSON.parse(data.join('\n')));
}
