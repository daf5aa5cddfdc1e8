// Tables that become cards on narrow screens, sort, and are updated in place: unchanged cells keep
// their elements, so focus and selection stay.
import { h, replace, setText } from './dom.js';
import { count } from './format.js';

/**
 * `columns`: {label, cell(row) → text or element, of(row)?, kind?, sort?(row)}. A cell is rebuilt if
 * of(row) differs (default: cell(row), which must then be text). `kind` is a class: "number",
 * "title" (first line of a card), "wide", "actions". `sorted` is [label, 'ascending'|'descending'].
 * With `page`, the table shows so many rows at a time. Returns {element, setRows(rows)}; `key(row)` identifies a row.
 */
export function makeTable({ label, columns, key, sorted = null, empty = 'Nothing here.', page = Infinity }) {
  const made = new Map(); // key → {line, cells, seen}
  let rows = [];
  let first = 0; // of the shown rows
  const body = h('tbody');
  const none = h('div', { class: 'empty', hidden: true });
  const heads = columns.map((column) => h('th', { scope: 'col', class: column.kind ?? null },
    column.sort ? h('button', { type: 'button', onclick: () => sortBy(column) }, column.label) : column.label));
  const table = h('table', { 'aria-label': label }, h('thead', {}, h('tr', {}, heads)), body);

  function sortBy(column) {
    const one = column.kind?.startsWith('number') ? 'descending' : 'ascending';
    const other = one === 'ascending' ? 'descending' : 'ascending';
    first = 0;
    sorted = [column.label, sorted?.[0] === column.label && sorted[1] === one ? other : one];
    draw();
  }

  function inOrder() {
    const column = sorted && columns.find(({ label: name }) => name === sorted[0]);
    if (!column) return rows;
    const sign = sorted[1] === 'ascending' ? 1 : -1;
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    return rows.map((row) => [column.sort(row), row])
      .sort((a, b) => sign * compare(a[0], b[0])).map(([, row]) => row);
  }

  function lineOf(row) {
    const id = key(row);
    if (!made.has(id)) {
      const cells = columns.map((column) => h('td', { class: column.kind ?? null, 'data-label': column.label }));
      made.set(id, { line: h('tr', {}, cells), cells, seen: columns.map(() => undefined) });
    }
    const { line, cells, seen } = made.get(id);
    columns.forEach((column, i) => {
      const value = (column.of ?? column.cell)(row);
      if (value === seen[i]) return;
      seen[i] = value;
      const content = column.cell(row);
      replace(cells[i], Array.isArray(content) ? h('div', {}, content) : content);
      if (column.kind?.startsWith('number')) cells[i].classList.toggle('zero', value === '0' || value === '–');
    });
    return line;
  }

  function draw() {
    while (first > 0 && first >= rows.length) first -= page;
    const shown = inOrder().slice(first, first + page);
    const present = new Set(shown.map(key));
    for (const id of made.keys()) if (!present.has(id)) made.delete(id);
    const lines = shown.map(lineOf);
    const isSame = lines.length === body.children.length && lines.every((line, i) => body.children[i] === line);
    if (!isSame) {
      const focused = body.contains(document.activeElement) ? document.activeElement : null;
      body.replaceChildren(...lines);
      if (focused?.isConnected) focused.focus({ preventScroll: true });
    }
    heads.forEach((head, i) => {
      if (sorted?.[0] === columns[i].label) head.setAttribute('aria-sort', sorted[1]);
      else head.removeAttribute('aria-sort');
    });
    none.hidden = rows.length > 0;
    table.hidden = rows.length === 0;
    pager.hidden = rows.length <= page;
    setText(place, `${count(first + 1)} to ${count(first + shown.length)} of ${count(rows.length)}`);
    back.disabled = first === 0;
    ahead.disabled = first + page >= rows.length;
  }
  function turn(pages) {
    first += pages * page;
    draw();
    element.scrollIntoView();
  }

  const place = h('span', { class: 'sub' });
  const back = h('button', { type: 'button', onclick: () => turn(-1) }, 'Previous');
  const ahead = h('button', { type: 'button', onclick: () => turn(1) }, 'Next');
  const pager = h('div', { class: 'pager', hidden: true }, place, back, ahead);
  const element = h('div', { class: 'paged' }, h('div', { class: 'card table' }, table, none), pager);
  return {
    element,
    setRows(next, whyEmpty = empty) {
      rows = next;
      replace(none, whyEmpty);
      draw();
    },
  };
}
