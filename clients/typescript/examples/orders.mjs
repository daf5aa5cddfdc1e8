#!/usr/bin/env node
// Orders that are cancelled when they are not paid within 30 days.
//
//     npm ci && npm run build && node examples/orders.mjs [URL]
//
// Places two orders. The first is paid: its cancellation is cancelled. The second one's 30 days are
// made to pass, and the worker cancels it. Then it works on what falls due, until SIGTERM or Ctrl-C.
import { Client, Worker } from '../dist/index.js';

const client = new Client(process.argv[2] ?? 'http://127.0.0.1:7070');
for (const order of ['o-1001', 'o-1002']) {
  // With a key this may be repeated, whatever happened to the answer.
  await client.schedule({ queue: 'orders', payload: { order }, delay: '30d', key: order });
}

await client.cancel({ queue: 'orders', key: 'o-1001' });
console.log('o-1001 is paid: its cancellation is cancelled');
await client.move({ queue: 'orders', key: 'o-1002' }, { delay: 0 }); // 30 days later

function cancelOrder(task) {
  console.log(`${task.payload.order} is due: cancelled`);
  console.log('working until SIGTERM');
}

await new Worker(client, 'orders', cancelOrder, { concurrency: 4 }).run();
console.log('stopped');
