/**
 * Several versions of a workflow's code at the same time: which one a run gets.
 */
import type { WorkflowCode } from './run.js';

/** Code of the newest version, which has the others with it. */
export interface VersionedCode extends WorkflowCode {
  readonly versions: ReadonlyMap<number, WorkflowCode>;
}

/** Whether there is more than one version of it. */
export function isVersioned(code: WorkflowCode): code is VersionedCode {
  return (code as Partial<VersionedCode>).versions !== undefined;
}

/** The code for a run of a version: that of the same version, or else the newest. */
export function codeFor(code: VersionedCode, version: number): WorkflowCode {
  return code.versions.get(version) ?? code;
}
