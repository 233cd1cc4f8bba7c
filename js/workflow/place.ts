/**
 * Where in the user's code something was called: the first frame of the stack that is not ours.
 */

const FRAME = /(?:\(|at )((?:file:\/\/|\/|[A-Za-z]:\\|webpack:|node:|internal\/)[^()]*?:\d+:\d+)\)?$/;
const ownFolder = folderOfPackage();

/** `file:line:column`, or `undefined` when the stack does not tell. @param trace an error made at the place */
export function placeOf(trace: { readonly stack?: unknown }): string | undefined {
  return framesOf(trace).find((place) => !isOurs(place) && !isPlatform(place));
}

/** ` at file:line:column`, or nothing. */
export function atPlace(trace: { readonly stack?: unknown } | null | undefined): string {
  const place = trace === null || trace === undefined ? undefined : placeOf(trace);
  return place === undefined ? '' : ` at ${place}`;
}

function framesOf(trace: { readonly stack?: unknown }): string[] {
  if (typeof trace.stack !== 'string') return [];
  const frames: string[] = [];
  for (const line of trace.stack.split('\n')) {
    const place = FRAME.exec(line.trimEnd())?.[1];
    if (place !== undefined) frames.push(place);
  }
  return frames;
}

function isOurs(place: string): boolean {
  return ownFolder !== undefined && place.includes(ownFolder);
}

function isPlatform(place: string): boolean {
  return place.startsWith('node:') || place.startsWith('internal/');
}

/** The folder of all that is ours: `…/js/`, of the sources, which is above this one, or `…/dist/`, of the one file. */
function folderOfPackage(): string | undefined {
  const own = framesOf(new Error('where'))[0];
  return own === undefined ? undefined : /^(?:file:\/\/)?(.*?[\\/])(?:workflow[\\/])?[^\\/]*$/.exec(own)?.[1];
}
