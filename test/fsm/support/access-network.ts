import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  FormSchema,
  SeedRecordSchema,
  ServiceSessionCreateSchema,
} from '../../../proto/gen/command_pb.ts'
import { applyLogEntry } from '../../../src/fsm/apply-log-entry.ts'
import { initialSeedRecords } from '../../../src/fsm/seed/seed.ts'
import { canonicalJson, type JsonObject } from '../../../src/lib/text/canonical-json.ts'
import { type Random, seededRandom } from '../../../src/lib/random.ts'
import type { Outcome } from '../../../src/ports/proposer.ts'
import { LogWriter } from './log.ts'
import { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

const { ENTITY_CREATE, ENTITY_PATCH, ENTITY_DELETE } = CommandKind
export type Step = readonly [number, string, string, JsonObject]

/** First letter of the IDs of each kind of record in the network. */
const letters = {
  identity: 'i',
  service: 's',
  edgeRouter: 'r',
  servicePolicy: 'p',
  edgeRouterPolicy: 'e',
  serviceEdgeRouterPolicy: 'f',
  postureCheck: 'k',
  config: 'c',
  configType: 't',
} as const
type Kind = keyof typeof letters

/** A small network with random changes: every kind of entry that changes access. */
export class RandomNetwork {
  readonly state = new ClusterState()
  readonly log: LogWriter
  readonly #random: Random
  /** Number of IDs of one kind; small, so that IDs are used again and by several records. */
  readonly #width: number
  readonly #hasChecks: boolean
  #sequence = 0

  constructor(seed: number) {
    this.#random = seededRandom(seed)
    this.#width = this.#random.integer(3, 8)
    this.#hasChecks = this.#random.next() < 0.5
    this.log = new LogWriter((entry) => applyLogEntry(this.state, entry))
    this.#form()
    if (this.#chance(0.5)) this.log.raiseLevel()
    if (this.#chance(0.7)) this.#open()
  }

  /** Permits every identity to use all routers, so that the other policies determine access. */
  #open(): void {
    const all = ['#all']
    this.log.create('edgeRouter', 'r1', { name: 'r1', roleAttributes: [] })
    const roles = { semantic: 'AnyOf', edgeRouterRoles: all }
    this.log.create('edgeRouterPolicy', 'e1', { name: 'e1', identityRoles: all, ...roles })
    this.log.create('serviceEdgeRouterPolicy', 'f1', { name: 'f1', serviceRoles: all, ...roles })
  }

  /**
   * Forms the cluster with services that exist only in the fabric API, which no operation creates.
   */
  #form(): void {
    const records = initialSeedRecords({
      adminId: 'admin',
      adminAuthenticatorId: 'admin-updb',
      adminName: 'Default Admin',
      passwordHash: '$argon2id$test',
    })
    const fabric = ['s0', 's-fabric'].map((id) =>
      create(SeedRecordSchema, {
        entity: 'service',
        id,
        json: new TextEncoder().encode(
          canonicalJson({ name: id, isFabricOnly: true, roleAttributes: ['a', 'b'] }),
        ),
      }),
    )
    const message = create(FormSchema, { clusterId: 'c', records: [...records, ...fabric] })
    this.log.command(CommandKind.FORM, toBinary(FormSchema, message))
  }

  #chance(probability: number): boolean {
    return this.#random.next() < probability
  }

  #pick<T>(from: readonly T[]): T {
    const value = from[this.#random.integer(0, from.length - 1)]
    if (value === undefined) throw new Error('nothing to pick')
    return value
  }

  #id(kind: Kind): string {
    if (kind === 'identity' && this.#chance(0.1)) return 'admin'
    // An identity with the same ID as an edge router with a tunnel.
    if (kind === 'identity' && this.#chance(0.15)) return this.#id('edgeRouter')
    return `${letters[kind]}${this.#random.integer(kind === 'service' ? 0 : 1, this.#width)}`
  }

  #known(kind: Kind): string | undefined {
    for (let tries = 0; tries < 4; tries += 1) {
      const id = this.#id(kind)
      if (this.state.get(kind, id) !== undefined) return id
    }
    return undefined
  }

  #attributes(): string[] {
    return ['a', 'b', 'c'].filter(() => this.#chance(0.4))
  }

  /**
   * Role attributes, some of which expire; sometimes the expiry is for an attribute that the
   * identity does not have.
   */
  #roleAttributes(): JsonObject {
    const roleAttributes = this.#attributes()
    if (this.#chance(0.6)) return { roleAttributes }
    const ends = [...roleAttributes, ...(this.#chance(0.1) ? ['a'] : [])].map((name) => {
      const end = this.#end()
      return [name, end === null ? null : new Date(end).toISOString()] as const
    })
    return { roleAttributes, roleAttributesExpireAt: Object.fromEntries(ends) }
  }

  /** A time at which something expires, mostly soon; sometimes none, or one in the past. */
  #end(): number | null {
    if (this.#chance(0.2)) return null
    return this.#chance(0.05) ? 1 : this.log.timeMs + this.#random.integer(10, 60)
  }

  /** Roles; sometimes with an ID that does not exist, so that the write is refused. */
  #roles(kind: Kind): string[] {
    if (this.#chance(0.12)) return ['#all']
    const roles = this.#attributes().map((name) => `#${name}`)
    const named = this.#chance(0.03) ? this.#id(kind) : this.#known(kind)
    if (named !== undefined && this.#chance(0.5)) roles.push(`@${named}`)
    return roles
  }

  #policy(kind: Kind): JsonObject {
    const semantic = this.#pick(['AllOf', 'AnyOf'])
    switch (kind) {
      case 'servicePolicy':
        return {
          type: this.#pick(['Dial', 'Bind']),
          semantic,
          identityRoles: this.#roles('identity'),
          serviceRoles: this.#roles('service'),
          postureCheckRoles: this.#chance(0.4) ? this.#roles('postureCheck') : [],
          ...(this.#chance(0.3) ? { expiresAt: this.#end() } : {}),
        }
      case 'edgeRouterPolicy':
        return {
          semantic,
          identityRoles: this.#roles('identity'),
          edgeRouterRoles: this.#roles('edgeRouter'),
        }
      default:
        return {
          semantic,
          serviceRoles: this.#roles('service'),
          edgeRouterRoles: this.#roles('edgeRouter'),
        }
    }
  }

  /** Fields of a record of this kind, except its name. */
  #fields(kind: Kind): JsonObject {
    switch (kind) {
      case 'identity':
        return { isAdmin: this.#chance(0.1), ...this.#roleAttributes() }
      case 'service':
        return { roleAttributes: this.#attributes(), configs: this.#configs() }
      case 'edgeRouter':
        return { roleAttributes: this.#attributes() }
      case 'postureCheck':
        return { roleAttributes: this.#attributes() }
      case 'config':
        return { data: { port: this.#random.integer(1, 3) } }
      case 'configType':
        return {}
      default:
        return this.#policy(kind)
    }
  }

  #configs(): string[] {
    return [this.#known('config'), this.#known('config')].filter((id) => id !== undefined)
  }

  /** Fields that are required at creation and never change. */
  #fixed(kind: Kind): JsonObject {
    if (kind === 'service') return { encryptionRequired: true }
    if (kind === 'postureCheck') return { typeId: 'MFA' }
    if (kind === 'config') return { configTypeId: this.#known('configType') ?? 't1' }
    return {}
  }

  #someKind(): Kind {
    const kinds: Kind[] = [
      'servicePolicy',
      'servicePolicy',
      'servicePolicy',
      'identity',
      'identity',
      'service',
      'service',
      'config',
      'configType',
      'edgeRouter',
      'edgeRouterPolicy',
      'serviceEdgeRouterPolicy',
      ...(this.#hasChecks ? (['postureCheck'] as const) : []),
    ]
    return this.#pick(kinds)
  }

  #createStep(kind: Kind, id = this.#id(kind)): Step {
    const name = this.#chance(0.03) ? 'taken' : id
    return [ENTITY_CREATE, kind, id, { name, ...this.#fixed(kind), ...this.#fields(kind) }]
  }

  /** A patch of some fields; sometimes of none. */
  #patchStep(kind: Kind): Step {
    const id = this.#known(kind) ?? this.#id(kind)
    const fields = Object.entries(this.#fields(kind)).filter(() => this.#chance(0.5))
    if (this.#chance(0.1)) fields.push(['name', `${id}-${this.#random.integer(0, 3)}`])
    return [ENTITY_PATCH, kind, id, Object.fromEntries(fields)]
  }

  #deleteStep(kind: Kind): Step {
    return [ENTITY_DELETE, kind, this.#known(kind) ?? this.#id(kind), {}]
  }

  #step(): Step {
    const kind = this.#someKind()
    if (this.#chance(0.45)) return this.#patchStep(kind)
    return this.#chance(0.7) ? this.#createStep(kind) : this.#deleteStep(kind)
  }

  /** The records that are created for a router with a tunnel. */
  #tunneler(): readonly Step[] {
    const id = this.#id('edgeRouter')
    const roles = [`@${id}`]
    const policy = { semantic: 'AnyOf', identityRoles: roles, edgeRouterRoles: roles }
    return [
      [ENTITY_CREATE, 'edgeRouter', id, { name: id, isTunnelerEnabled: true, roleAttributes: [] }],
      [ENTITY_CREATE, 'identity', id, { name: id, typeId: 'Router', roleAttributes: ['a'] }],
      [ENTITY_CREATE, 'edgeRouterPolicy', id, { name: `edge-router-${id}-system`, ...policy }],
    ]
  }

  #batch(): Outcome {
    return this.log.batch(this.steps())
  }

  /** Steps of one entry; the entry is not applied. */
  steps(max = 5): readonly Step[] {
    if (this.#chance(0.2)) return this.#tunneler()
    const steps = Array.from({ length: this.#random.integer(1, max) }, () => this.#step())
    // Creates a record before the other steps, and deletes it after them.
    if (this.#chance(0.2)) {
      const id = `${letters.service}-brief`
      steps.unshift(this.#createStep('service', id))
      steps.push([ENTITY_DELETE, 'service', id, {}])
    }
    return steps
  }

  #logIn(): Outcome {
    this.#sequence += 1
    const identity = this.#known('identity') ?? this.#known('identity') ?? 'admin'
    return this.log.logIn(`as${this.#sequence}`, identity, '')
  }

  #someApiSession(): string {
    const ids = [...this.state.table('apiSession').ids]
    return ids.length === 0 ? 'none' : this.#pick(ids)
  }

  #overrides(): Outcome {
    const identity = this.#known('identity') ?? 'admin'
    const pairs = Array.from({ length: this.#random.integer(1, 3) }, () => {
      return [this.#known('service') ?? 's9', this.#known('config') ?? 'c9'] as const
    })
    const what = this.#chance(0.65) ? 'associate' : 'disassociate'
    return this.log.serviceConfigs(what, identity, pairs)
  }

  /** A service, mostly one that the identity may use, because refusals differ little. */
  #serviceOf(apiSessionId: string): string {
    const identityId = String(this.state.get('apiSession', apiSessionId)?.['identityId'])
    const identity = this.state.get('identity', identityId)
    const seen = identity === undefined ? [] : [...this.state.access.grantsOf(identity).any]
    return seen.length > 0 && this.#chance(0.8) ? this.#pick(seen) : this.#id('service')
  }

  /** @returns the outcome, the request, and the checks that pass at their current revisions. */
  openServiceSession(): {
    readonly outcome: Outcome
    readonly apiSessionId: string
    readonly serviceId: string
    readonly type: string
    readonly passingChecks: readonly string[]
  } {
    this.#sequence += 1
    const apiSessionId = this.#someApiSession()
    const asked = {
      id: `ss${this.#sequence}`,
      apiSessionId,
      serviceId: this.#serviceOf(apiSessionId),
      type: this.#pick(['Dial', 'Bind']),
    }
    const vouched = [...this.state.table('postureCheck').ids].map((id) => {
      const revision = this.state.get('postureCheck', id)?.revision ?? 0
      // Results of posture checks: most pass, and some are from before the last change of the
      // check.
      return { id, isPassing: this.#chance(0.7), revision: revision - (this.#chance(0.1) ? 1 : 0) }
    })
    const message = create(ServiceSessionCreateSchema, {
      ...asked,
      passingChecks: vouched
        .filter(({ isPassing }) => isPassing)
        .map(({ id, revision }) => ({ id, revision: BigInt(revision) })),
    })
    const passingChecks = vouched
      .filter(
        ({ id, isPassing, revision }) =>
          isPassing && revision === this.state.get('postureCheck', id)?.revision,
      )
      .map(({ id }) => id)
    const payload = toBinary(ServiceSessionCreateSchema, message)
    const { outcome } = this.log.command(CommandKind.SERVICE_SESSION_CREATE, payload)
    if (outcome === null) throw new Error('the command was passed over')
    return { outcome, ...asked, passingChecks }
  }

  /** Applies one entry, other than the opening of a service session. */
  change(isEarly: boolean): Outcome {
    // The creation times are different, to distinguish two records with the same ID.
    this.log.timeMs += this.#random.integer(1, 4)
    const create = (): Outcome => this.log.batch([this.#createStep(this.#someKind())])
    if (isEarly) return this.#chance(0.2) ? this.#logIn() : create()
    const roll = this.#random.next()
    if (roll < 0.12) return this.#logIn()
    if (roll < 0.18) return this.log.logOut(this.#someApiSession())
    if (roll < 0.21) return this.log.touch(this.#someApiSession(), this.log.timeMs)
    if (roll < 0.23) return this.log.disable(this.#known('identity') ?? 'i9', 0)
    if (roll < 0.25) return this.log.enable(this.#known('identity') ?? 'i9')
    if (roll < 0.33) return this.#overrides()
    if (roll < 0.37) return this.log.endAccess().outcome ?? { ok: true, id: '' }
    if (roll < 0.5) return this.#batch()
    if (roll < 0.55) {
      const kind = this.#someKind()
      const id = this.#known(kind) ?? this.#id(kind)
      return this.log.replace(kind, id, { name: id, ...this.#fixed(kind), ...this.#fields(kind) })
    }
    if (roll < 0.62) return create()
    const [kind, entity, id, fields] = this.#step()
    if (kind === ENTITY_DELETE) return this.log.delete(entity, id)
    if (kind === ENTITY_PATCH) return this.log.patch(entity, id, fields)
    return this.log.create(entity, id, fields)
  }

  integer(min: number, max: number): number {
    return this.#random.integer(min, max)
  }
}
