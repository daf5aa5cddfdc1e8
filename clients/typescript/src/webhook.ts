// Checks that a webhook is from your server, complete and recent: Standard Webhooks, version 1.
import { createHmac, timingSafeEqual } from 'node:crypto';

import { InvalidSignature } from './errors.js';

export interface VerifyOptions {
  /** Largest difference in milliseconds between the timestamp and now; default 5 minutes. */
  tolerance?: number;
  /** Milliseconds since 1970; default: the system's time. */
  now?: number;
}

/** Headers of a request, from Node's http or from fetch. */
type RequestHeaders = Headers | Readonly<Record<string, string | string[] | undefined>>;

/** Returns the webhook's id, the same at every attempt; throws InvalidSignature.
 *
 *  keys: "whsec_…", one or several; the signature of one key is enough.
 *  body: the received bytes. JSON that was parsed and written again has other bytes. */
export function verifyWebhook(
  keys: string | readonly string[],
  headers: RequestHeaders,
  body: Uint8Array | string,
  options: VerifyOptions = {},
): string {
  const secrets = (typeof keys === 'string' ? [keys] : keys).map(secretOf);
  const given = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  const find = (wanted: string): string => {
    const found = Object.entries(given).find(([name]) => name.toLowerCase() === wanted)?.[1];
    if (typeof found !== 'string') throw new InvalidSignature(`${wanted} is missing`);
    return found;
  };
  const id = find('webhook-id');
  const sent = find('webhook-timestamp');
  const signatures = find('webhook-signature').split(' ');
  if (!/^\d+$/.test(sent)) {
    throw new InvalidSignature('webhook-timestamp must be a number of seconds');
  }
  const age = (options.now ?? Date.now()) - Number(sent) * 1000;
  if (Math.abs(age) > (options.tolerance ?? 300_000)) {
    throw new InvalidSignature(
      'webhook-timestamp differs from the current time by more than the tolerance');
  }
  for (const secret of secrets) {
    const signed = createHmac('sha256', secret).update(`${id}.${sent}.`).update(body);
    const expected = Buffer.from(`v1,${signed.digest('base64')}`);
    const isSame = (signature: string) => {
      const bytes = Buffer.from(signature);
      return bytes.length === expected.length && timingSafeEqual(bytes, expected);
    };
    if (signatures.some(isSame)) return id;
  }
  throw new InvalidSignature('no signature matches one of the keys');
}

/** Throws TypeError for an invalid key. The message does not have the key. */
function secretOf(key: string): Buffer {
  const text = key.slice('whsec_'.length);
  const secret = Buffer.from(text, 'base64');
  if (!key.startsWith('whsec_') || secret.toString('base64') !== text) {
    throw new TypeError('a key must be "whsec_" and base64');
  }
  return secret;
}
