// Quantiles and medians of measurements.

/** The value below which a share `p` of the samples lies. */
export function quantile(samples, p) {
  if (samples.length === 0) return NaN;
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
}

export const median = (samples) => quantile(samples, 0.5);

/** Differences of neighbours. */
export const gaps = (times) => times.slice(1).map((time, index) => time - times[index]);

/** Median, smallest and largest. */
export function spread(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}
