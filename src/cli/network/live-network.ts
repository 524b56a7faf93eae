import { entitiesByName } from '../../entities/registry.ts'
import { seededConfigTypes } from '../../fsm/seed/seed-config-types.ts'
import { isSameJson, type JsonObject } from '../../lib/text/canonical-json.ts'
import { listShape, objectShape, textShape } from '../client/response-shape.ts'
import type { RecordApi } from '../client/record-api.ts'
import { toFilterLiteral, type ApiRecordRow, rowsShape } from '../records/rows.ts'
import {
  canonicalFields,
  readNetworkFileFields,
  translateReferences,
} from './network-file-fields.ts'
import {
  allSections,
  objectKey,
  objectLabel,
  type NetworkObject,
  type NetworkSection,
} from './sections.ts'

/** An object that exists in the network. */
export interface LiveObject extends NetworkObject {
  readonly id: string
  /** True if the object cannot be deleted, because it is built in or is part of another object. */
  readonly isKept: boolean
  /**
   * True if a file need not contain the object: every network has it with the same fields, or it is
   * the unchanged identity of a router.
   */
  readonly isUsual: boolean
}

/** The current objects of a network, limited to those that a file can describe. */
export interface LiveNetwork {
  readonly objects: readonly LiveObject[]
  /** The ID of the record with this kind and name; undefined when no such record exists. */
  idOf(kind: string, name: string): string | undefined
  /** Names of all records of a kind, and of the kinds that share its table. */
  namesOf(kind: string): readonly string[]
}

const PAGE = 500
const serviceConfigsShape = listShape(
  objectShape<{ readonly serviceId: string; readonly configId: string }>({
    serviceId: textShape,
    configId: textShape,
  }),
)
const AT_ONCE = 8

/** The table that stores a kind. Kinds that share a table also share their names and IDs. */
export function tableForKind(kind: string): string {
  return entitiesByName.get(kind)?.table ?? kind
}

/** Reads the objects of all sections from the API, one page after the other. */
export async function readNetwork(
  client: RecordApi,
  sections: readonly NetworkSection[] = allSections(),
): Promise<LiveNetwork> {
  const reader = new NetworkReader(client)
  for (const section of sections) await reader.read(section)
  return reader.network()
}

interface Found {
  readonly section: NetworkSection
  readonly id: string
  readonly isKept: boolean
  readonly isUsual: boolean
  /** Fields of the object; references in them are still ids. */
  readonly fields: JsonObject
}

class NetworkReader {
  readonly #client: RecordApi
  readonly #found: Found[] = []
  readonly #nameOf = new Map<string, string>()
  readonly #idOf = new Map<string, string>()

  constructor(client: RecordApi) {
    this.#client = client
  }

  async read(section: NetworkSection): Promise<void> {
    if (section.kind.id === 'serviceConfig') {
      await this.#readServiceConfigs(section)
      return
    }
    for await (const rows of this.#pages(section)) {
      for (const row of rows) this.#take(section, row)
    }
  }

  network(): LiveNetwork {
    const byOrder = this.#found.flatMap((found) => this.#object(found))
    const objects = allSections().flatMap((section) =>
      assignDuplicateNumbers(byOrder.filter((one) => one.section === section)),
    )
    const names = new Map<string, string[]>()
    for (const key of this.#idOf.keys()) {
      const [table = '', name = ''] = split(key)
      names.set(table, [...(names.get(table) ?? []), name])
    }
    return {
      objects,
      idOf: (kind, name) => this.#idOf.get(`${tableForKind(kind)} ${name}`),
      namesOf: (kind) => names.get(tableForKind(kind)) ?? [],
    }
  }

  /**
   * Reads pages in the order of IDs, so that records that are created or deleted meanwhile do not
   * shift the others.
   */
  async *#pages({ kind }: NetworkSection): AsyncGenerator<readonly ApiRecordRow[]> {
    for (let last = ''; ;) {
      // Built-in records are skipped, except for auth policies: the default auth policy is built
      // in, but can be changed.
      const conditions = [
        ...(kind.id === 'authPolicy' ? [] : ['isSystem != true']),
        ...(last === '' ? [] : [`id > ${toFilterLiteral(last)}`]),
      ]
      const filter = conditions.length === 0 ? 'true' : conditions.join(' and ')
      const query = new URLSearchParams({ filter, sort: 'id', limit: String(PAGE) })
      const path = `/${kind.plural}?${query.toString()}`
      const rows = (await this.#client.ask({ method: 'GET', path }, rowsShape)).data
      yield rows
      last = rows.at(-1)?.id ?? ''
      if (rows.length < PAGE) return
    }
  }

  #take(section: NetworkSection, row: ApiRecordRow): void {
    const { kind } = section
    const table = tableForKind(kind.id)
    if (kind.hasName) {
      const isKnown = this.#nameOf.has(`${table} ${row.id}`)
      this.#nameOf.set(`${table} ${row.id}`, String(row['name']))
      this.#idOf.set(`${table} ${String(row['name'])}`, row.id)
      // An edge router also appears in the list of all routers; it is added only once.
      if (isKnown) return
    }
    const fields = readNetworkFileFields(kind, row)
    const isSeed = seededConfigTypeFields(section, fields) !== null
    const isOfRouter = fields['type'] === 'Router'
    const isGiven = isSeed || fields['isDefaultAdmin'] === true || row.id === 'default'
    const isUsual =
      isSameJson(fields, seededConfigTypeFields(section, fields)) || isImpliedRouterIdentity(fields)
    this.#found.push({ section, id: row.id, isKept: isOfRouter || isGiven, isUsual, fields })
  }

  #object({ section, id, isKept, isUsual, fields }: Found): LiveObject {
    const named = translateReferences(
      section.kind,
      fields,
      (to, word) => this.#nameOf.get(`${tableForKind(to)} ${word}`) ?? word,
    )
    return {
      section,
      id,
      isKept,
      isUsual,
      key: objectKey(section, named),
      label: objectLabel(section, named),
      fields: named,
    }
  }

  /**
   * Reads the service configs of identities. This takes one request for each identity, and none if
   * the network has no configs or no services.
   */
  async #readServiceConfigs(section: NetworkSection): Promise<void> {
    const has = (id: string): boolean => this.#found.some(({ section: { kind } }) => kind.id === id)
    if (!has('config') || !has('service')) return
    const identities = [...this.#nameOf.keys()].flatMap((key) => {
      const [table, id = ''] = split(key)
      return table === 'identity' ? [id] : []
    })
    for (let at = 0; at < identities.length; at += AT_ONCE) {
      const some = identities.slice(at, at + AT_ONCE)
      const lists = await Promise.all(some.map((id) => this.#serviceConfigsOf(id)))
      for (const [index, list] of lists.entries()) {
        for (const { serviceId, configId } of list) {
          const fields = { identity: some[index] ?? '', service: serviceId, config: configId }
          this.#found.push({
            section,
            id: some[index] ?? '',
            isKept: false,
            isUsual: false,
            fields,
          })
        }
      }
    }
  }

  async #serviceConfigsOf(
    id: string,
  ): Promise<readonly { readonly serviceId: string; readonly configId: string }[]> {
    const path = `/identities/${encodeURIComponent(id)}/service-configs`
    return (await this.#client.ask({ method: 'GET', path }, serviceConfigsShape)).data
  }
}

/** Splits a key into the kind (or table) and the name, which may contain spaces. */
function split(key: string): [string, string] {
  const at = key.indexOf(' ')
  return [key.slice(0, at), key.slice(at + 1)]
}

const seeds = new Map(seededConfigTypes.map((one) => [one.name, one]))

/** Fields of the built-in config type with this name; null if there is none. */
export function seededConfigTypeFields(
  { kind }: NetworkSection,
  fields: JsonObject,
): JsonObject | null {
  const seed = kind.id === 'configType' ? seeds.get(String(fields['name'])) : undefined
  if (seed === undefined) return null
  const { name, target, schema } = seed
  return canonicalFields(kind, { name, target, schema })
}

/**
 * True for an identity of a router that has only its name and type, both of which follow from the
 * router.
 */
export function isImpliedRouterIdentity(fields: JsonObject): boolean {
  return fields['type'] === 'Router' && Object.keys(fields).length === 2
}

/** Sorts objects by key. Terminators with the same key get a number, so that their keys differ. */
export function assignDuplicateNumbers<T extends NetworkObject>(objects: readonly T[]): T[] {
  const counts = new Map<string, number>()
  const ordered = objects
    .map((object) => ({ object, text: JSON.stringify(object.fields) }))
    .sort((a, b) => compare(a.object.key, b.object.key) || compare(a.text, b.text))
  return ordered.map(({ object }) => {
    if (object.section.kind.id !== 'terminator') return object
    const count = (counts.get(object.key) ?? 0) + 1
    counts.set(object.key, count)
    return count === 1 ? object : { ...object, key: `${object.key} (${count})` }
  })
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
