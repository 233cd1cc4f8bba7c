// The process that gets killed. It opens the directory and asks for the import. After a kill the import is under way
// already: the same id and the same input mean the same run.

import { open } from 'fusee';
import { importFlights, watch } from './flights.mjs';

const [directory, ledger, slices] = process.argv.slice(2);

// One line a step for the parent: microseconds from the end of the step before to the start of this one, in which its
// result was recorded and made durable. Empty for the first one after a start.
let endedAt;
watch.stepBegins = () => {
  process.stdout.write(`step ${endedAt === undefined ? '' : (performance.now() - endedAt) * 1000}\n`);
};
watch.stepEnds = () => {
  endedAt = performance.now();
};

const engine = await open(directory, { workflows: [importFlights] });
const run = await engine.start(importFlights, { slices: Number(slices), ledger }, { id: 'flights-2001' });
const totals = await run.result();
await engine.close();
process.stdout.write(`totals ${JSON.stringify(totals)}\n`);
