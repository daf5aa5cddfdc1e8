// Constructs that the dashboard's files must not use, so that text is never parsed as markup or code,
// and nothing is loaded from another server. The browser enforces most of this; the test names the line.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

const folder = new URL('../../dashboard/', import.meta.url);
const FORBIDDEN = [
  /\b(inner|outer)HTML\b/, /\binsertAdjacentHTML\b/, /\bdocument\.write/, /\beval\(/, /\bnew Function\b/,
  /\bDOMParser\b/, /\bcreateContextualFragment\b/, /\bsrcdoc\b/, /\bjavascript:/i, /\bsetTimeout\(\s*['"`]/,
  /(src|href)\s*=\s*["']https?:/, /@import\b/, /\burl\(/, /\sstyle=/, /\bimport\(/,
];

test('the dashboard has no way to read text as markup, and loads from nowhere else', () => {
  const names = fs.readdirSync(folder).filter((name) => /\.(js|css|html|svg)$/.test(name));
  assert.ok(names.length > 15, `only ${names.length} files`);
  for (const name of names) {
    const lines = fs.readFileSync(new URL(name, folder), 'utf8').split('\n');
    lines.forEach((line, i) => {
      for (const pattern of FORBIDDEN) assert.doesNotMatch(line, pattern, `${name}:${i + 1}`);
    });
  }
});

test('each script begins with a comment that says what it is, and stays small', () => {
  for (const name of fs.readdirSync(folder).filter((file) => file.endsWith('.js'))) {
    const text = fs.readFileSync(new URL(name, folder), 'utf8');
    assert.match(text, /^\/\/ \w/, name);
    assert.ok(text.split('\n').length < 350, `${name} is long`);
  }
});
