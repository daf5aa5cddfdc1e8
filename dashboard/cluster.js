// Cluster: which servers there are. Today a server stands alone; this says so, and what it is.
import { h, replace } from './dom.js';
import { count, duration, localTime, plural } from './format.js';
import { onLive } from './live.js';

export const title = 'Cluster';

const fact = (name, ...value) => [h('dt', {}, name), h('dd', {}, value)];

export function show(root, route, signal) {
  const facts = h('dl', { class: 'facts' });
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Cluster')),
    h('section', { class: 'card verdict' }, h('div', {}, h('strong', {}, 'This server stands alone.'),
      h('p', { class: 'sub' }, 'It holds all queues itself; no other server takes over when it is down. Tasks wait on its disk until it is back, and none is lost.'))),
    h('section', { class: 'card' }, h('h2', {}, 'This server'), facts));
  onLive(({ stats, startedAt }) => {
    if (!stats) return;
    replace(facts, fact('address', h('code', {}, location.origin)), fact('version', stats.version),
      stats.epoch !== undefined && fact('epoch', count(stats.epoch), h('span', { class: 'sub' }, ' · grows with each start; leases of an earlier one are stale')),
      fact('running for', duration(stats.uptime_ms), h('span', { class: 'sub' }, ` · since ${localTime(startedAt)}`)),
      fact('queues', count(stats.queue_count ?? stats.queues.length)),
      fact('tasks in memory', count(stats.loaded), h('span', { class: 'sub' }, ' · those due soon; the others are on disk only')),
      fact('waiting workers', count(stats.waiting_workers)), fact('recurring schedules', count(stats.schedules)),
      stats.external && fact('with another system', plural(stats.external.tasks, 'task')),
      fact('damaged records set aside', count(stats.counters.quarantined)));
  }, signal);
}
