// Compiles clients/typescript, with the compiler of its lock file.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../clients/typescript/', import.meta.url));
const compiler = `${folder}node_modules/typescript/bin/tsc`;
const { status } = spawnSync(process.execPath, [compiler, '-p', folder], { stdio: 'inherit' });
process.exit(status ?? 1);
