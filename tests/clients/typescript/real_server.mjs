// A real server for one test, as a process. Its data folder is temporary.
//
// DETENT_BINARY names the program. The first start takes a free port, and later starts use it
// again.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export class RealServer {
  constructor(...flags) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detent-'));
    this.data = path.join(this.folder, 'data');
    this.flags = flags;
    this.address = '127.0.0.1:0';
  }
  get url() {
    return `http://${this.address}`;
  }
  async start() {
    this.process = spawn(process.env.DETENT_BINARY,
      ['serve', '--data', this.data, '--http', this.address, '--beanstalk', 'off',
        '--log-level', 'error', ...this.flags],
      { stdio: ['ignore', 'pipe', 'inherit'] });
    this.address = await new Promise((resolve, reject) => {
      let said = '';
      this.process.stdout.on('data', (part) => {
        said += part;
        const found = said.match(/ready at http:\/\/(127\.0\.0\.1:\d+)/);
        if (found) resolve(found[1]);
      });
      this.process.once('exit', () => reject(new Error('the server has gone: ' + said)));
    });
    return this;
  }
  /** kill -9 */
  async kill() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const gone = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGKILL');
    await gone;
  }
  async close() {
    await this.kill();
    fs.rmSync(this.folder, { recursive: true });
  }
}
