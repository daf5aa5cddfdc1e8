// JSON as text, byte for byte. It keeps details that JSON.parse() loses (long numbers, 1.0, spaces). Pure.

/** The end of the value that begins at `at`. Requires valid JSON. */
function endOfValue(text, at) {
  let depth = 0;
  let inString = false;
  for (let i = at; i < text.length; ++i) {
    const c = text[i];
    if (inString) {
      if (c === '\\') ++i;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === '{' || c === '[') ++depth;
    else if (c === '}' || c === ']') {
      if (depth === 0) return i;
      --depth;
    } else if (c === ',' && depth === 0) return i;
  }
  return text.length;
}

/** The text of a member of the object in `text`; undefined if there is no such member. */
export function rawMember(text, name) {
  let at = text.indexOf('{') + 1;
  while (at > 0 && at < text.length) {
    const member = /^\s*("(?:[^"\\]|\\.)*")\s*:\s*/.exec(text.slice(at));
    if (!member) return undefined;
    const from = at + member[0].length;
    const end = endOfValue(text, from);
    if (JSON.parse(member[1]) === name) return text.slice(from, end).trimEnd();
    at = end + 1;
  }
  return undefined;
}

/** JSON.stringify(object) with one more member whose value is JSON text (undefined: no member). */
export function withRaw(object, name, raw) {
  const text = JSON.stringify(object);
  if (raw === undefined) return text;
  const comma = text === '{}' ? '' : ',';
  return `${text.slice(0, -1)}${comma}${JSON.stringify(name)}:${raw}}`;
}

/** The same tokens, laid out over lines. */
export function indented(raw) {
  let out = '';
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  for (const [token] of raw.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (token === '{' || token === '[') {
      ++depth;
      out += token + line();
    } else if (token === '}' || token === ']') {
      --depth;
      const isEmpty = /[{[]\s*$/.test(out);
      out = isEmpty ? out.trimEnd() + token : out + line() + token;
    } else if (token === ',') out += ',' + line();
    else out += token === ':' ? ': ' : token;
  }
  return out;
}
