import { visibleText } from '../../app/visible-text.ts'
import { texts } from '../../texts.ts'
import { type Draft, isObject } from './json-values.ts'

/**
 * The title of a record: its name, a text with the names of the records to which it belongs, its
 * address or its ID.
 * @param hasMethod whether the title of an authenticator or enrollment contains its method.
 */
export function rowTitle(row: Draft & { readonly id: string }, hasMethod = true): string {
  const { name, identity, edgeRouter, service, router, address, method } = row as Readonly<
    Record<string, unknown>
  >
  if (typeof name === 'string' && name !== '') return visibleText(name)
  const owner = [identity, edgeRouter].find(isObject)?.['name']
  if (typeof owner === 'string' && owner !== '') {
    const methods: Readonly<Record<string, string>> = texts.list.methods
    return visibleText(
      hasMethod && typeof method === 'string' ? `${owner} (${methods[method] ?? method})` : owner,
    )
  }
  // A terminator has no name; its address is an ID if an identity hosts the service.
  if (isObject(service) && isObject(router) && typeof service['name'] === 'string') {
    return visibleText(texts.list.terminatorOf(service['name'], String(router['name'] ?? '')))
  }
  return typeof address === 'string' && address !== '' ? visibleText(address) : row.id
}
