#!/usr/bin/env node
// Orders that are cancelled when they are not paid within 30 days.
//
//     npm ci && npm run build && node examples/orders.mjs [URL]
//
// Places two orders. The first is paid: its cancellation is cancelled. The second one's 30 days are
// made to pass, and the worker cancels it. Then it works on what falls due, until SIGTERM or Ctrl-C.
import { Client, Worker } from '../dist/index.js';

const client = new Client(process.argv[2] ?? 'http://127.0.0.1:7070');
// Numbers that no run had before: a key stands for its order for a while after the task's end.
const [paid, unpaid] = [1, 2].map((i) => `o-${Date.now()}-${i}`);
for (const order of [paid, unpaid]) {
  // With a key this may be repeated, whatever happened to the answer.
  await client.schedule({ queue: 'orders', payload: { order }, delay: '30d', key: order });
}

await client.cancel({ queue: 'orders', key: paid });
console.log(`${paid} is paid: its cancellation is cancelled`);
await client.move({ queue: 'orders', key: unpaid }, { delay: 0 }); // 30 days later

function cancelOrder(task) {
  console.log(`${task.payload.order} is due: cancelled`);
  console.log('working until SIGTERM');
}

await new Worker(client, 'orders', cancelOrder, { concurrency: 4 }).run();
console.log('stopped');
