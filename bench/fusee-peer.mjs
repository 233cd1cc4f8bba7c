// fusee in the harness that measures other engines. Copied there and started by bench/peers.mjs, which says by FUSEE_ROOT
// where this package is; `durable.mjs` is the harness's.

import { createRequire } from 'node:module';
import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { DATA } from './lib.mjs';
import { main, st } from './durable.mjs';

const require = createRequire(path.join(process.env.FUSEE_ROOT, 'package.json'));
const { open, workflow } = require('fusee');
const { version } = require('fusee/package.json');

await main({
  peer: 'fusee',
  versions: `fusee ${version}`,
  settings: `flush ${process.env.FUSEE_FLUSH ?? 'auto'}, durable on every acknowledgement`,
  server: () => ({ env: { dir: mkdtempSync(path.join(DATA, 'fusee-')) }, stop: () => {} }),
  engine: async (env, bodies) => {
    const workflows = new Map();
    for (const [name, body] of Object.entries(bodies)) {
      const handler = (ctx, input) =>
        body({ step: (step, fn) => ctx.step(step, () => fn()), sleep: (seconds) => ctx.sleep(seconds * 1000) }, input);
      workflows.set(name, workflow(name, handler));
    }
    const engine = await open(env.dir, { workflows: [...workflows.values()], dev: false });
    return {
      run: (name, input) => engine.execute(workflows.get(name), input),
      start: (name, input) => engine.start(workflows.get(name), input),
      // The functions have returned; finished means that their results are durable.
      settle: async (name, count) => {
        while ((await engine.count({ type: name, status: 'completed' })) < Math.min(count, st.ended)) continue;
      },
      stop: () => engine.close({ grace: 0 }),
    };
  },
});
