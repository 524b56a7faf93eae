import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { hasPermission } from '../../app/management-document.ts'
import { isObject } from './json-values.ts'
import { findKindAtPath } from './kinds.ts'
import { readRecordNames } from './record-data.ts'

/** A record whose name is shown in place of its id. */
export interface NamedRecord {
  /** Collection of the record in the management API. */
  readonly path: string
  readonly id: string
}

/** Names by `collection/id`; '' for a record that does not exist. */
const known = signal<ReadonlyMap<string, string>>(new Map())
const NAMES_MAX = 2000
const LOOKED_UP_MAX = 100

/** Known names by `collection/id`; loads those of these records that are missing. */
export function useRecordNames(records: readonly NamedRecord[]): ReadonlyMap<string, string> {
  const missing = new Map<string, Set<string>>()
  for (const { path, id } of records) {
    if (known.value.has(`${path}/${id}`)) continue
    if (!hasPermission(`${findKindAtPath(path)?.permission}.read`)) continue
    const ids = missing.get(path) ?? new Set()
    if (ids.size < LOOKED_UP_MAX) ids.add(id)
    missing.set(path, ids)
  }
  const key = [...missing].map(([path, ids]) => `${path} ${[...ids].join(' ')}`).join('\n')
  useEffect(() => {
    const stopping = new AbortController()
    for (const [path, ids] of missing) {
      readRecordNames(path, [...ids], stopping.signal)
        .then((names) => {
          const found = [...ids].map((id) => [`${path}/${id}`, names.get(id) ?? ''] as const)
          known.value = new Map([...[...known.value].slice(-NAMES_MAX), ...found])
        })
        .catch(() => undefined)
    }
    return () => stopping.abort()
  }, [key])
  return known.value
}

/** A text for each value of a map by ID, such as `wiki: 7`; another value is unchanged. */
export function valueTexts(value: unknown, nameOf: (id: string) => string): unknown {
  if (!isObject(value)) return value
  return Object.entries(value).map(([id, one]) => `${nameOf(id)}: ${String(one)}`)
}

/**
 * Names of identities by ID, for lists that contain only IDs. An ID without a name is absent: the
 * name is not loaded yet, the identity was deleted, or the user may not read it.
 */
export function useIdentityNames(ids: readonly string[]): ReadonlyMap<string, string> {
  const used = [...new Set(ids)].filter((id) => id !== '')
  const names = useRecordNames(used.map((id) => ({ path: 'identities', id })))
  return new Map(
    used.flatMap((id) => {
      const name = names.get(`identities/${id}`) ?? ''
      return name === '' ? [] : [[id, name] as const]
    }),
  )
}
