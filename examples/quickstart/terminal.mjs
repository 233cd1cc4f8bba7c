// What the parent prints.

const isLive = process.stdout.isTTY && !process.env.CI;

/** A bar on a terminal; elsewhere a line for each quarter. */
export class Progress {
  #steps;
  #quarter = 0;

  constructor(steps) {
    this.#steps = steps;
  }

  show(done) {
    const share = Math.min(1, done / this.#steps);
    if (isLive) {
      const filled = Math.round(share * 40);
      process.stdout.write(`\r[${'#'.repeat(filled)}${'.'.repeat(40 - filled)}] ${Math.floor(share * 100)} %`);
    } else if (share * 4 >= this.#quarter + 1) {
      this.#quarter = Math.floor(share * 4);
      console.log(`${this.#quarter * 25} % of the steps`);
    }
  }

  say(line) {
    if (isLive) process.stdout.write('\r\x1b[K');
    console.log(line);
  }

  end() {
    if (isLive) process.stdout.write('\n');
  }
}

export function table(rows) {
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column].length)));
  console.log();
  for (const [name, value, remark = ''] of rows) {
    console.log(`  ${name.padEnd(widths[0])}  ${value.padStart(widths[1])}  ${remark}`.trimEnd());
  }
  console.log();
}

export function number(value) {
  return value.toLocaleString('en');
}
