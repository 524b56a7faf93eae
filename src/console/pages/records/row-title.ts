import { visibleText } from '../../app/visible-text.ts'
import { isObject } from './json-values.ts'
import type { RecordRow } from './record-data.ts'

/** The title of a record: its name, or the name of the record to which it belongs. */
export function rowTitle(row: RecordRow): string {
  const { name, identity, edgeRouter, address, method } = row as Readonly<Record<string, unknown>>
  if (typeof name === 'string' && name !== '') return visibleText(name)
  const owner = [identity, edgeRouter].find(isObject)?.['name']
  if (typeof owner === 'string' && owner !== '') {
    return visibleText(typeof method === 'string' ? `${owner} (${method})` : owner)
  }
  return typeof address === 'string' && address !== '' ? visibleText(address) : row.id
}
