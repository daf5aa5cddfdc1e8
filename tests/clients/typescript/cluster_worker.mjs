// cluster_worker.mjs URL QUEUE: a worker that tests/cluster/clients_test.py controls. It reads the
// commands `go` (let handlers return), `hold` (let handlers wait) and `stop`. It prints
// `began PAYLOAD`, `done PAYLOAD` (or `abandoned PAYLOAD`) and `error TEXT`.
import readline from 'node:readline';

import * as detent from '../../../clients/typescript/dist/index.js';

const [url, queue] = process.argv.slice(2);
let mayReturn = false;
let waiting = [];
const go = () => {
  mayReturn = true;
  for (const resolve of waiting.splice(0)) resolve();
};

async function handle({ payload, abandoned }) {
  console.log(`began ${payload}`);
  if (!mayReturn) await new Promise((resolve) => waiting.push(resolve));
  console.log(`${abandoned.aborted ? 'abandoned' : 'done'} ${payload}`);
}

const client = new detent.Client(url, { retryFor: 5_000 });
const worker = new detent.Worker(client, queue, handle, {
  concurrency: 10, prefetch: 20, wait: 1_000, visibilityTimeout: 30_000,
  onError: (error) => console.log(`error ${error.message}`) });
worker.start();
for await (const line of readline.createInterface({ input: process.stdin })) {
  if (line === 'stop') break;
  if (line === 'go') go();
  else mayReturn = false;
}
go();
await worker.stop();
process.exit(0);
