import type { Disablement } from '../lib/is-disabled.ts'
import type { Index } from '../raft/types.ts'

export type ModelAction = 'create' | 'update' | 'delete'

export interface ModelIdentity extends Disablement {
  readonly id: string
  readonly name: string
  readonly defaultHostingPrecedence: string
  readonly defaultHostingCost: number
  readonly serviceHostingPrecedences: Readonly<Record<string, string>>
  readonly serviceHostingCosts: Readonly<Record<string, number>>
  readonly appDataJson: string
  /**
   * Service id → config type id → config id, for configs that replace the service's own configs.
   */
  readonly serviceConfigs: Readonly<Record<string, Readonly<Record<string, string>>>>
}

interface ModelService {
  readonly id: string
  readonly name: string
  readonly encryptionRequired: boolean
  readonly configs: readonly string[]
}

interface ModelPolicy {
  readonly id: string
  readonly name: string
  readonly type: 'Dial' | 'Bind'
}

interface ModelConfig {
  readonly id: string
  readonly typeId: string
  readonly name: string
  readonly dataJson: string
}

interface ModelConfigType {
  readonly id: string
  readonly name: string
  readonly target: string
}

interface ModelRouter {
  readonly id: string
  readonly name: string
  /** Hex SHA-1 of the router's client certificate; '' before the router has enrolled. */
  readonly fingerprint: string
  /** Ids of the router's configs, in the order in which the record lists them. */
  readonly configs: readonly string[]
  readonly isDisabled: boolean
}

interface ModelRevocation {
  readonly id: string
  readonly type: string
  /** UTC ms. */
  readonly expiresAt: number
  /** UTC ms. Routers refuse tokens that were signed earlier. */
  readonly issuedBefore: number
}

export interface ModelProcess {
  readonly osType: string
  readonly path: string
  readonly hashes: readonly string[]
  readonly fingerprints: readonly string[]
}

export type ModelPostureCheckRules =
  | { readonly case: 'mac'; readonly macAddresses: readonly string[] }
  | {
      readonly case: 'mfa'
      readonly timeoutSeconds: number
      readonly promptOnWake: boolean
      readonly promptOnUnlock: boolean
      readonly ignoreLegacyEndpoints: boolean
    }
  | {
      readonly case: 'os'
      readonly systems: readonly { readonly osType: string; readonly versions: readonly string[] }[]
    }
  | { readonly case: 'process'; readonly process: ModelProcess }
  | {
      readonly case: 'processes'
      readonly semantic: string
      readonly processes: readonly ModelProcess[]
    }
  | { readonly case: 'domains'; readonly domains: readonly string[] }

interface ModelPostureCheck {
  readonly id: string
  readonly name: string
  readonly typeId: string
  readonly terms: ModelPostureCheckRules
}

/** An operator's certificate authority for client certificates. */
interface ModelAuthority {
  readonly id: string
  readonly certPem: string
}

export type PolicyMember = 'service' | 'identity' | 'postureCheck'

/**
 * One change of the model, as routers receive it. A deletion contains only the id of the record.
 */
export type ModelEvent =
  | { readonly kind: 'configType'; readonly action: ModelAction; readonly value: ModelConfigType }
  | { readonly kind: 'config'; readonly action: ModelAction; readonly value: ModelConfig }
  | { readonly kind: 'identity'; readonly action: ModelAction; readonly value: ModelIdentity }
  | { readonly kind: 'service'; readonly action: ModelAction; readonly value: ModelService }
  | { readonly kind: 'router'; readonly action: ModelAction; readonly value: ModelRouter }
  | {
      readonly kind: 'postureCheck'
      readonly action: ModelAction
      readonly value: ModelPostureCheck
    }
  | { readonly kind: 'servicePolicy'; readonly action: ModelAction; readonly value: ModelPolicy }
  | { readonly kind: 'authority'; readonly action: ModelAction; readonly value: ModelAuthority }
  | { readonly kind: 'revocation'; readonly action: ModelAction; readonly value: ModelRevocation }
  /**
   * Members that a policy gains or loses. A deleted member leaves all policies, which causes no
   * such event.
   */
  | {
      readonly kind: 'members'
      readonly policyId: string
      readonly of: PolicyMember
      readonly ids: readonly string[]
      readonly isAdded: boolean
    }

/** Listens for the model events of each entry, and for a replacement of the whole model. */
export interface ModelListener {
  /**
   * Called in the apply step, after an entry that has changed the model. Must neither throw nor
   * write.
   */
  onEntry(index: Index, events: readonly ModelEvent[]): void
  /** Called after a snapshot or backup replaced the whole model. */
  onReplaced(): void
}

/**
 * The part of the replicated state from which edge routers decide about access, and its changes.
 */
export interface RouterModel {
  /** Index of the state that `all` returns. */
  readonly appliedIndex: Index
  /**
   * The whole model as creation events, with referenced records first. The iterator is lazy: the
   * state must not change before its end.
   */
  all(): Iterable<ModelEvent>
  /** The identity in the model; undefined if it does not exist. */
  identity(id: string): ModelIdentity | undefined
  /**
   * Identities that are disabled until a time, UTC ms. The result may contain identities whose time
   * has passed.
   */
  disabledForNow(): Iterable<{ readonly id: string; readonly untilMs: number }>
  /**
   * Calls the listener when the model changes.
   * @returns a function that stops the calls.
   */
  follow(follower: ModelListener): () => void
}
