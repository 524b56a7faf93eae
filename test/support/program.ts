import { resolve } from 'node:path'

/** Launcher of the sources, for a test that changes them as they are loaded. */
export const flotillaOfSources = resolve(import.meta.dirname, '../../bin/flotilla')

/**
 * The launcher that tests start: `make test` has it built as for an installation, which starts in
 * half the processor time.
 */
export const flotilla = process.env['FLOTILLA_PROGRAM'] ?? flotillaOfSources
