/** Calls `fn(0) … fn(count - 1)`, at most `width` at a time. */
export async function pool(count, width, fn) {
  let next = 0;
  const lane = async () => {
    while (next < count) await fn(next++);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
}
