#!/usr/bin/env node
// Orders that are cancelled when they are not paid within 30 days.
//
//     npm ci && npm run build && node examples/orders.mjs [URL]
//
// Places two orders. The first order is paid, so its cancellation is cancelled. For the second order,
// the example skips the 30 days, and the worker cancels it. Then it works on due tasks until SIGTERM
// or Ctrl-C.
import { Client, Worker } from '../dist/index.js';

const client = new Client(process.argv[2] ?? 'http://127.0.0.1:7070');
// New numbers for each run: a key stands for its order for some time after the task has ended.
const [paid, unpaid] = [1, 2].map((i) => `o-${Date.now()}-${i}`);
for (const order of [paid, unpaid]) {
  // With a key you can repeat this call, even if its answer was lost.
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
