import { resolve } from 'node:path'

/** The launcher that tests start: `make test` has it built as for an installation, which starts in half the processor time. */
export const flotilla =
  process.env['FLOTILLA_PROGRAM'] ?? resolve(import.meta.dirname, '../../bin/flotilla')
