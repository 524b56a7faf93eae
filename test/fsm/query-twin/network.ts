import { findEntity } from '../../../src/entities/registry.ts'
import type { KindName } from '../../../src/entities/kind-records.ts'
import { defineEntity } from '../../../src/entities/define-entity.ts'
import { idReferenceField, textField } from '../../../src/entities/fields.ts'
import { digestLanes } from '../../../src/fsm/records/digest.ts'
import { noQueryLinks } from '../../../src/fsm/query/evaluate.ts'
import { RecordLister } from '../../../src/fsm/query/list.ts'
import { StateReader } from '../../../src/fsm/state-reader.ts'
import { Table } from '../../../src/fsm/records/table.ts'
import type { Json } from '../../../src/lib/text/canonical-json.ts'
import type { Random } from '../../../src/lib/random.ts'
import type { ListQuery, ListResult } from '../../../src/ports/state-view.ts'
import type { Plain, World } from './kinds.ts'
import { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

const clock = { nowMs: () => 0, monotonicMs: () => 0 }
export const startMs = Date.UTC(2024, 1, 28, 23, 59, 59, 990)

const hosting = defineEntity({
  name: 'hosting',
  plural: 'hostings',
  operations: {},
  fields: { binding: textField(), serviceId: idReferenceField('service', 'cascade') },
  symbols: [
    'binding',
    { name: 'service', field: 'serviceId' },
    ...['name', 'isFabricOnly', 'createdAt'].map((symbol) => ({
      name: `service.${symbol}`,
      through: { field: 'serviceId' as const, of: 'service' as const, symbol },
    })),
  ],
})

export function pick<T>(random: Random, values: readonly T[]): T {
  const value = values[random.integer(0, values.length - 1)]
  if (value === undefined) throw new Error('nothing to pick')
  return value
}

const letters = [
  'a',
  'b',
  'A',
  'é',
  'ß',
  'İ',
  '\uFF5E',
  '😀',
  '\uE000',
  'z',
  ' ',
  '"',
  '\\',
  '\n',
  '0',
]
const attributes = ['a', 'b', 'c', 'd', 'all', '😀']

export function word(random: Random, lengthMax = 4): string {
  let made = ''
  for (let i = random.integer(0, lengthMax); i > 0; i -= 1) made += pick(random, letters)
  return made
}

type Listed = KindName | 'hosting'

/** The same records in the real state and as plain JSON. */
export class Network implements World {
  readonly #random: Random
  readonly #state = new ClusterState()
  readonly #reader = new StateReader(this.#state, clock)
  readonly #hostings = new Table(hosting)
  readonly #lister = new RecordLister({
    ...noQueryLinks,
    table: (kind) => this.#state.tables.get(kind) ?? null,
  })
  readonly #plain = new Map<string, Map<string, Plain>>()
  #made = 0

  constructor(random: Random, size = pick(random, [0, 3, 12, 40, 40, 120, 400])) {
    this.#random = random
    for (let i = 0; i < size; i += 1)
      this.#make(pick(random, ['identity', 'service', 'identity'] as const))
    for (const kind of [
      'config',
      'authenticator',
      'authPolicy',
      'servicePolicy',
      'router',
      'terminator',
      'hosting',
    ] as const) {
      for (let i = random.integer(0, Math.min(size, 25)); i > 0; i -= 1) this.#make(kind)
    }
  }

  records(kind: string): readonly Plain[] {
    return [...(this.#plain.get(kind)?.values() ?? [])]
  }

  list(kind: string, query: ListQuery): ListResult {
    if (kind === 'hosting') return this.#lister.list(this.#hostings, query, null)
    return this.#reader.list(findEntity(kind).name, query)
  }

  servicesOf(policyId: string, query: ListQuery): ListResult | null {
    return this.#reader.subList('servicePolicy', policyId, 'services', query)
  }

  /** Adds, removes or changes a record; the indexes must follow. */
  change(): void {
    const kind = pick<Listed>(this.#random, [
      'identity',
      'service',
      'authenticator',
      'hosting',
      'config',
      'router',
      'terminator',
    ])
    const known = this.records(kind)
    const chance = this.#random.next()
    if (known.length === 0 || chance < 0.3) this.#make(kind)
    else if (chance < 0.6) this.#make(kind, pick(this.#random, known).id)
    else this.#drop(kind, pick(this.#random, known).id)
  }

  #drop(kind: Listed, id: string): void {
    this.#plain.get(kind)?.delete(id)
    if (kind === 'hosting') this.#hostings.change(id, undefined)
    else this.#state.remove(kind, id)
  }

  #make(kind: Listed, known?: string): void {
    const random = this.#random
    const id = known ?? `${pick(random, ['a', 'Z', '-', '_', '9'])}${this.#made}${kind.slice(0, 3)}`
    this.#made += 1
    const createdAt = startMs + random.integer(0, 30)
    const base = { id, createdAt, updatedAt: createdAt + random.integer(0, 9), revision: 1 }
    const values = { ...base, tags: this.#tags(), ...this.#fields(kind, id) }
    const table = kind === 'hosting' ? this.#hostings : this.#state.table(kind)
    const record = table.shape(values, 1)
    if (kind === 'hosting') this.#hostings.change(id, { record, lanes: digestLanes('', '') })
    else this.#state.put(kind, values)
    if (random.next() < 0.05) this.#state.takeDirty()
    const plain = this.#plain.get(kind) ?? new Map<string, Plain>()
    this.#plain.set(kind, plain.set(id, JSON.parse(JSON.stringify(record)) as Plain))
  }

  #tags(): Record<string, Json> {
    const random = this.#random
    const tags: Record<string, Json> = {}
    if (random.next() < 0.6) tags['n'] = pick<Json>(random, [0, 1, 2, 2.5, -3, null, '2', true])
    if (random.next() < 0.6) tags['where'] = pick<Json>(random, ['here', 'There', '', '2024-01-01'])
    if (random.next() < 0.4) tags['some-key'] = pick<Json>(random, [true, false, 1, 'x'])
    return tags
  }

  /**
   * A value that is unique in its kind, as the state machine requires; sometimes empty, which the
   * state machine refuses.
   */
  #unique(kind: string, field: string, id: string): string {
    for (;;) {
      const value = word(this.#random, 5)
      const isTaken = this.records(kind).some((other) => other.id !== id && other[field] === value)
      if (!isTaken || value === '') return value
    }
  }

  #some(values: readonly string[]): string[] {
    return values.filter(() => this.#random.next() < 0.3).sort()
  }

  #idOf(kind: string): string {
    const known = this.records(kind)
    if (known.length === 0 || this.#random.next() < 0.2) return pick(this.#random, ['', 'gone'])
    return pick(this.#random, known).id
  }

  #roles(kind: string): string[] {
    if (this.#random.next() < 0.15) return ['#all']
    const ids = [this.#idOf(kind), this.#idOf(kind)].filter((id) => id !== '')
    return [
      ...new Set([...this.#some(attributes).map((one) => `#${one}`), ...ids.map((id) => `@${id}`)]),
    ]
  }

  #fields(kind: string, id: string): Record<string, Json> {
    const random = this.#random
    const flag = (): boolean => random.next() < 0.3
    switch (kind) {
      case 'identity':
        return {
          name: this.#unique(kind, 'name', id),
          externalId: flag() ? this.#unique(kind, 'externalId', id) : null,
          typeId: pick(random, ['Default', 'Router', '']),
          authPolicyId: pick(random, ['default', 'x']),
          isAdmin: flag(),
          isDefaultAdmin: flag(),
          roleAttributes: this.#some(attributes),
        }
      case 'service':
        return {
          name: this.#unique(kind, 'name', id),
          terminatorStrategy: pick(random, ['smartrouting', 'weighted']),
          isFabricOnly: random.next() < 0.1,
          roleAttributes: this.#some(attributes),
          configs: [...new Set([this.#idOf('config'), this.#idOf('config')])]
            .filter(Boolean)
            .sort(),
        }
      case 'config':
        return { name: this.#unique(kind, 'name', id), configTypeId: pick(random, ['t', 'u', 'U']) }
      case 'authenticator':
        return {
          method: pick(random, ['updb', 'cert']),
          identityId: this.#idOf('identity'),
          username: flag() ? this.#unique(kind, 'username', id) : null,
          fingerprint: flag() ? null : this.#unique(kind, 'fingerprint', id),
          isIssuedByNetwork: flag(),
          extendRequestedAt: flag() ? null : startMs + random.integer(0, 30),
        }
      case 'authPolicy':
        return {
          name: this.#unique(kind, 'name', id),
          primary: {
            cert: { allowed: flag(), allowExpiredCerts: flag() },
            updb: { minPasswordLength: random.integer(4, 12), maxAttempts: random.integer(0, 3) },
          },
          secondary: { requireTotp: flag(), requireExtJwtSigner: flag() ? word(random) : null },
          isSystem: flag(),
        }
      case 'servicePolicy':
        return {
          name: this.#unique(kind, 'name', id),
          type: pick(random, ['Dial', 'Bind']),
          semantic: pick(random, ['AllOf', 'AnyOf']),
          identityRoles: this.#roles('identity'),
          serviceRoles: this.#roles('service'),
        }
      case 'router':
        return { name: this.#unique(kind, 'name', id) }
      case 'terminator':
        return {
          binding: word(random),
          address: word(random, 8),
          instanceId: flag() ? word(random) : '',
          serviceId: this.#idOf('service'),
          routerId: this.#idOf('router'),
          isFabricOnly: random.next() < 0.1,
        }
      default:
        return { binding: word(random), serviceId: this.#idOf('service') }
    }
  }
}
