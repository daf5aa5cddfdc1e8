// The form of the view Tasks: what to search for.
import { h } from './dom.js';
import { fromInput, toInput } from './format.js';

const STATES = ['', 'scheduled', 'ready', 'leased', 'dead', 'completed', 'cancelled'];
const LABELS = { queue: 'Queue', state: 'State', key: 'Key', payload: 'Payload contains', error: 'Last error', due_after: 'Due from', due_before: 'Due before' };
const SHORT = ['state', 'key', 'payload', 'error'];

/** `names` is a datalist with queue names; `onSearch(parameters)` gets the search. */
export function makeForm(query, names, onSearch) {
  const value = (name) => query.get(name) ?? '';
  const time = (name) => (value(name) ? toInput(value(name)) : '');
  const text = (name, more = {}) => h('input', { value: value(name), autocomplete: 'off', spellcheck: 'false', ...more });
  const input = {
    queue: text('queue', { list: 'queue-names' }),
    state: h('select', {}, STATES.map((state) => h('option', { value: state, selected: state === value('state') }, state || 'any'))),
    key: text('key'),
    payload: text('payload'),
    error: text('error'),
    due_after: h('input', { type: 'datetime-local', step: '1', value: time('due_after') }),
    due_before: h('input', { type: 'datetime-local', step: '1', value: time('due_before') }),
  };
  const submit = (event) => {
    event.preventDefault();
    const asked = {};
    for (const [name, field] of Object.entries(input)) {
      const given = name.startsWith('due_') ? fromInput(field.value)?.toISOString() : field.value.trim();
      if (given) asked[name] = given;
    }
    onSearch(asked);
  };
  return h('form', { class: 'card fields', onsubmit: submit, 'aria-label': 'Find tasks' },
    Object.entries(input).map(([name, field]) => h('label', { class: SHORT.includes(name) ? null : 'long' }, h('span', {}, LABELS[name]), field)), names,
    h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Search'),
      h('a', { class: 'button', href: '#/tasks' }, 'Clear')));
}
