// Cluster: the nodes and their shards, or a note that this server is not part of a cluster.
import { get } from './api.js';
import { every, h, replace } from './dom.js';
import { bytes, count, duration, localTime, plural } from './format.js';
import { onLive } from './live.js';
import { fact } from './parts.js';

export const title = 'Cluster';

const ALONE = () => h('section', { class: 'card verdict' }, h('div', {}, h('strong', {}, 'This server is not part of a cluster.'),
  h('p', { class: 'sub' }, 'It serves all queues itself. If it is down, no other server takes over: all tasks wait on its disk until it is back.')));

/** A summary of all nodes. Older servers do not report missing nodes. */
function verdict({ nodes, shards, missing = [] }) {
  const orphans = shards.filter(({ node }) => node === null).length;
  const text = orphans === 0 ? 'Every shard has a node.' : `${plural(orphans, 'shard')} without a node at present.`;
  const gone = missing.map(({ node, address, missing_ms: ms }) => h('li', {}, h('strong', {}, node), ' at ', h('code', {}, address),
    ` has been missing for ${duration(ms)}: it did not leave the cluster.`));
  return h('section', { class: missing.length > 0 ? 'card verdict bad' : 'card verdict' }, h('div', {},
    missing.length > 0 && h('strong', {}, `${plural(missing.length, 'node')} ${missing.length === 1 ? 'is' : 'are'} missing. `), h('strong', {}, text),
    gone.length > 0 && h('ul', {}, gone),
    h('p', { class: 'sub' }, `${plural(nodes.length, 'node')} ${nodes.length === 1 ? 'has' : 'share'} ${plural(shards.length, 'shard')}. ` +
      'Each queue belongs to one shard, and each shard to one node at a time. If a node fails, the other nodes take over its shards within the length of a shard lease.')));
}

const number = (text) => h('th', { class: 'number' }, text);

/** The total backlog of some shards; empty while the backlog of a shard is not known. */
const backlogOf = (shards) => (shards.some(({ backlog }) => backlog === null) ? '–' : count(shards.reduce((sum, { backlog }) => sum + backlog, 0)));

function nodeTable({ node: self, nodes, shards: all }) {
  const row = ({ node, address, shards }) => h('tr', {}, h('td', {}, node, node === self && h('span', { class: 'sub' }, ' · this one')),
    h('td', {}, h('code', {}, address)), h('td', { class: 'number' }, count(shards)),
    h('td', { class: 'number' }, backlogOf(all.filter((shard) => shard.node === node))));
  return h('section', { class: 'card' }, h('h2', {}, 'Nodes'), h('table', {},
    h('thead', {}, h('tr', {}, h('th', {}, 'Name'), h('th', {}, 'Address'), number('Shards'), number('Backlog'))),
    h('tbody', {}, nodes.map(row))));
}

function shardTable({ shards }) {
  const row = (one) => h('tr', {}, h('td', { class: 'number' }, count(one.shard)),
    h('td', {}, one.node ?? h('strong', {}, 'nobody')), h('td', { class: 'number' }, count(one.epoch)),
    h('td', { class: 'number' }, backlogOf([one])));
  return h('section', { class: 'card' }, h('h2', {}, 'Shards'),
    h('p', { class: 'sub' }, 'The epoch rises each time a shard changes its owner. Writes of an earlier owner are rejected. The backlog is the number of tasks that are ready and not leased.'),
    h('table', {}, h('thead', {}, h('tr', {}, number('Shard'), h('th', {}, 'Node'), number('Epoch'), number('Backlog'))),
      h('tbody', {}, shards.map(row))));
}

export function show(root, route, signal) {
  const facts = h('dl', { class: 'facts' });
  const nodes = h('div', { class: 'stack' });
  replace(root, h('div', { class: 'head' }, h('h1', {}, 'Cluster')), nodes,
    h('section', { class: 'card' }, h('h2', {}, 'This server'), facts));
  every(2_000, signal, async () => {
    try {
      const cluster = await get('/v1/cluster', signal);
      replace(nodes, ...(cluster.node === null ? [ALONE()] : [verdict(cluster), nodeTable(cluster), shardTable(cluster)]));
    } catch (error) {
      if (error.name !== 'AbortError') replace(nodes, h('p', { class: 'wrong' }, error.message));
    }
  });
  onLive(({ stats, startedAt }) => {
    if (!stats) return;
    replace(facts, fact('address', h('code', {}, location.origin)), fact('version', stats.version),
      stats.epoch !== undefined && fact('epoch', count(stats.epoch), h('span', { class: 'sub' }, ' · rises with each start; leases of an earlier epoch are stale')),
      fact('running for', duration(stats.uptime_ms), h('span', { class: 'sub' }, ` · since ${localTime(startedAt)}`)),
      fact('queues', count(stats.queue_count)),
      stats.data_free_bytes !== undefined && fact('free disk', bytes(stats.data_free_bytes)),
      stats.counters && [fact('tasks in memory', count(stats.loaded), h('span', { class: 'sub' }, ' · due soon; all other tasks are on disk only')),
        fact('waiting workers', count(stats.waiting_workers)), fact('recurring schedules', count(stats.schedules))],
      stats.external && fact('with another system', plural(stats.external.tasks, 'task'),
        stats.external.lost && h('span', { class: 'wrong' }, ' · it has lost far tasks; the log says what to do')),
      stats.counters && fact('damaged records set aside', count(stats.counters.quarantined)));
  }, signal);
}
