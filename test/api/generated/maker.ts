import type { Json } from '../../../src/lib/text/canonical-json.ts'
import type { Field } from '../../../src/entities/fields.ts'
import { entitiesByName } from '../../../src/entities/registry.ts'
import { type ApiName, bases } from '../../support/served-answers.ts'
import { examples, knownIds } from './examples.ts'
import {
  collectionOf,
  entityAt,
  pathParameters,
  type ServedOperation,
  urlOf,
} from './operations.ts'
import { propertiesOf, requiredOf, sample, sampleObject, typesOf, uniqueText } from './schemas.ts'

/** An ID that no record has. */
export const NOWHERE = 'no-such-id'

export interface Told {
  readonly status: number
  readonly text: string
  readonly body: { readonly data?: unknown }
}
/** Sends a request as an administrator. */
export type Ask = (method: string, url: string, body?: unknown) => Promise<Told>

/** Creates valid bodies for operations, and the records to which bodies and paths refer. */
export class Maker {
  readonly #operations: readonly ServedOperation[]
  readonly #ask: Ask
  readonly #ids = new Map<string, Promise<string>>()

  constructor(operations: readonly ServedOperation[], ask: Ask) {
    this.#operations = operations
    this.#ask = ask
  }

  /**
   * ID of a record in a collection of the management API: the same record each time, or a new one
   * for `<collection> fresh`. `NOWHERE` if no record exists there and none can be created.
   * @throws if no record can be created because examples.ts has no entry for the collection.
   */
  readonly id = (collection: string): Promise<string> => {
    const [path = '', fresh] = collection.split(' ')
    return fresh === undefined ? this.#shared('management', path) : this.fresh(path)
  }

  #shared(api: ApiName, path: string): Promise<string> {
    const key = `${api} ${path}`
    let made = this.#ids.get(key)
    if (made === undefined) {
      made = this.#known(api, path)
      this.#ids.set(key, made)
    }
    return made
  }

  /**
   * Permits everybody to use every service and edge router: on the client API, even an
   * administrator sees only records that policies permit, and a service session needs an edge
   * router.
   */
  async openAll(): Promise<void> {
    await this.id('/edge-routers')
    for (const kind of ['service', 'edge-router', 'service-edge-router']) {
      const policies = this.#creation(`/${kind}-policies`)
      if (policies === undefined) throw new Error(`${kind} policies are served`)
      await this.create(policies, await this.body(policies, 'full'))
    }
  }

  async fresh(collection: string, api: ApiName = 'management'): Promise<string> {
    const operation = this.#creation(collection, api)
    if (operation === undefined) throw new Error(`nothing is made at ${collection}`)
    const { id } = await this.create(operation, await this.body(operation, 'minimal'))
    return id
  }

  /** @throws with the missing members of the body, if the response names them. */
  async create(
    operation: ServedOperation,
    body: Json,
  ): Promise<{ readonly id: string; readonly told: Told }> {
    const told = await this.#ask('POST', urlOf(operation, await this.ids(operation)), body)
    if (told.status !== 201) {
      throw new Error(
        `${operation.operationId}: ${JSON.stringify(body)} was answered ${told.status} ${told.text}; ` +
          `say in test/api/generated/examples.ts what the schema of '${operation.path}' does not`,
      )
    }
    return { id: (told.body.data as { id: string }).id, told }
  }

  /** Values for the parameters in the path of an operation. */
  async ids(operation: ServedOperation): Promise<Record<string, string>> {
    const ids: Record<string, string> = {}
    for (const name of pathParameters(operation)) {
      const collection =
        name === 'id' ? collectionAbove(operation.path) : `/${name.replace(/Id$/, 's')}`
      ids[name] = await this.#shared(
        operation.api === 'fabric' ? 'fabric' : 'management',
        collection,
      )
    }
    return ids
  }

  #creation(collection: string, among: ApiName = 'management'): ServedOperation | undefined {
    return this.#operations.find(
      ({ api, method, path }) => api === among && method === 'POST' && path === collection,
    )
  }

  async #known(api: ApiName, collection: string): Promise<string> {
    const known = knownIds[collection]
    if (known !== undefined) return known
    if (this.#creation(collection, api) !== undefined) return this.fresh(collection, api)
    const told = await this.#ask('GET', `${bases[api]}${collection}`)
    const [first] = Array.isArray(told.body.data) ? (told.body.data as { id: string }[]) : []
    return first?.id ?? NOWHERE
  }

  /** `minimal`: only required members; `full`: a value for each member. */
  async body(operation: ServedOperation, extent: 'minimal' | 'full'): Promise<Json> {
    const { schema } = operation.body ?? { schema: {} }
    const example = await (
      examples[`${operation.method} ${operation.path}`] ?? this.#exampleOfKind(operation)
    )?.(this.id)
    if (!typesOf(schema).has('object')) return (example as Json | undefined) ?? sample(schema, true)
    const isFull = extent === 'full'
    const known = propertiesOf(schema)
    const body: Record<string, Json> = {
      ...sampleObject(schema, isFull),
      ...(await this.#described(operation.path, isFull ? Object.keys(known) : requiredOf(schema))),
    }
    for (const [name, value] of Object.entries(example ?? {})) {
      if (known[name] === undefined) continue
      if (value === undefined) delete body[name]
      else body[name] = value as Json
    }
    return body
  }

  #exampleOfKind({ method, path }: ServedOperation): (typeof examples)[string] | undefined {
    const collection = collectionOf(path)
    const isOfKind = path === collection || path === `${collection}/{id}`
    return !isOfKind || method === 'DELETE' ? undefined : examples[collection]
  }

  /**
   * Facts about the members of a kind from its descriptor, above all which members refer to other
   * records.
   */
  async #described(path: string, names: readonly string[]): Promise<Record<string, Json>> {
    const entity = entityAt(collectionOf(path))
    const members: Record<string, Json> = {}
    for (const name of names) {
      const field = entity?.fields[name]
      const value = field === undefined ? undefined : await this.#valueOf(field)
      if (value !== undefined) members[name] = value
    }
    return members
  }

  async #valueOf(field: Field): Promise<Json | undefined> {
    const target = entitiesByName.get(field.reference?.to ?? '')
    const at = `/${target?.collection ?? ''}`
    const isMade = this.#creation(at) !== undefined
    switch (field.kind) {
      case 'attributes':
        return [uniqueText('attribute'), uniqueText('attribute')].sort()
      case 'roleList':
        return ['#all']
      case 'reference':
        return isMade ? this.id(at) : field.zero
      case 'references':
        return isMade ? [await this.id(at)] : []
      case 'texts':
        return field.values?.slice(0, 1) ?? [uniqueText('text')]
      case 'map':
        return field.reference === null ? { probe: uniqueText('tag') } : {}
      default:
        return undefined
    }
  }
}

/**
 * The collection of a path: `/identities` for `/identities/{id}/disable`. For
 * `/current-identity/authenticators/{id}`, everything before the ID.
 */
function collectionAbove(path: string): string {
  return path.slice(0, path.indexOf('/{id}'))
}
