import { printableLine } from '../../lib/text/terminal-text.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { kindById, recordPath } from './kinds.ts'
import { RecordNameResolver } from './names.ts'
import { sendRecordWrite } from './write.ts'
import { printJson, printLine } from '../terminal/output.ts'

/** Disables an identity until it is enabled again; this ends its sessions and circuits. */
export async function disableIdentityByName(name: string, options: ContextOptions): Promise<void> {
  // A duration of 0 has no end.
  await send(name, 'disable', { durationMinutes: 0 }, options)
}

/** Enables an identity; this also ends its lockout and its pause after wrong codes. */
export async function enableIdentityByName(name: string, options: ContextOptions): Promise<void> {
  await send(name, 'enable', undefined, options)
}

async function send(
  name: string,
  action: 'disable' | 'enable',
  body: object | undefined,
  options: ContextOptions,
): Promise<void> {
  const kind = kindById('identity')
  const client = openContextClient(options)
  const { id } = await new RecordNameResolver(client).record(kind, name)
  const label = `identity ${printableLine(name)}`
  const path = `${recordPath(kind, id, 'detail')}/${action}`
  await sendRecordWrite(client, kind, `${action} ${label}`, { method: 'POST', path, body })
  if (options.json === true) printJson({ kind: kind.name, id })
  else printLine(`${action}d ${label}`)
}
