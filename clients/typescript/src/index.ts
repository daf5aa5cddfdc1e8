// A client of Detent, the durable delayed-task server: schedule tasks and work on due tasks.
//
//     const client = new Client('http://127.0.0.1:7070');
//     await client.schedule({ queue: 'orders', payload: { cancel: 1001 }, delay: '30d', key: 'o-1001' });
//     await new Worker(client, 'orders', (task) => cancelOrder(task.payload)).run();
//
// Start with Client (client.ts), then Worker (worker.ts). The server's repository describes its
// promises and each field in docs/reference/http.md. No dependency.
export { Client } from './client.js';
export type { CallOptions, ClientOptions, LeaseOptions, ListOptions } from './client.js';
export {
  Conflict,
  DataLoss,
  DetentError,
  Forbidden,
  Internal,
  InvalidArgument,
  InvalidSignature,
  NotFound,
  ResourceExhausted,
  TooLarge,
  Unauthorized,
  Unavailable,
} from './errors.js';
export type { Problem } from './errors.js';
export type {
  Backoff,
  Due,
  Duration,
  Instant,
  LeasedTask,
  LeaseStatus,
  NewSchedule,
  NewTask,
  Queue,
  QueueSettings,
  Schedule,
  ScheduledTask,
  Task,
  TaskKey,
  TaskName,
  TaskPage,
  TaskState,
} from './values.js';
export { verifyWebhook } from './webhook.js';
export type { VerifyOptions } from './webhook.js';
export { Dead, Retry, Worker } from './worker.js';
export type { Handler, WorkerOptions, WorkTask } from './worker.js';
