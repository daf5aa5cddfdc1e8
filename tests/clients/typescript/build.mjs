// Compiles clients/typescript. Exits with 77 (skipped) if the packages of its lock file are not
// installed; tools/setup test installs them.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../clients/typescript/', import.meta.url));
const compiler = `${folder}node_modules/typescript/bin/tsc`;
if (!fs.existsSync(compiler)) {
  console.log('skipped: npm ci --prefix clients/typescript has not been run');
  process.exit(77);
}
const { status } = spawnSync(process.execPath, [compiler, '-p', folder], { stdio: 'inherit' });
process.exit(status ?? 1);
